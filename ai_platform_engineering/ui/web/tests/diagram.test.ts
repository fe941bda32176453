import assert from "node:assert/strict";
import { test } from "node:test";

import { asDraw, asReport, MAX_SOURCE } from "../src/diagram/messages";

test("the frame draws sources of limited length", () => {
  assert.deepEqual(asDraw({ source: "graph", dark: true, more: 1 }), { source: "graph", dark: true });
  for (const data of [null, "graph", {}, { source: 1, dark: true }, { source: "x".repeat(MAX_SOURCE + 1), dark: true }]) {
    assert.equal(asDraw(data), null);
  }
});

test("the page trusts nothing that the frame reports", () => {
  assert.deepEqual(asReport({ state: "ready" }), { state: "ready" });
  assert.deepEqual(asReport({ state: "drawn", height: 167.4 }), { state: "drawn", height: 167 });
  assert.deepEqual(asReport({ state: "drawn", height: 1e9 }), { state: "drawn", height: 3000 });
  assert.deepEqual(asReport({ state: "drawn", height: -5 }), { state: "drawn", height: 40 });
  for (const data of [null, 1, "drawn", {}, { state: "drawn" }, { state: "drawn", height: NaN }, { state: "other" }]) {
    assert.equal(asReport(data), null);
  }
});
