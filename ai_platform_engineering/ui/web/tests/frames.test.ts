import assert from "node:assert/strict";
import { test } from "node:test";

import { effect, signal } from "@preact/signals";

import { Frames } from "../src/state/frames";

test("many changes are applied at once, in order, with the next frame", () => {
  const scheduled: (() => void)[] = [];
  const frames = new Frames((flush) => scheduled.push(flush));
  const text = signal("");
  let renderings = -1;
  effect(() => {
    void text.value;
    renderings += 1;
  });
  for (const letter of "abcdef") frames.add(() => (text.value += letter));
  assert.equal(scheduled.length, 1);
  assert.equal(text.value, "");
  scheduled.shift()?.();
  assert.equal(text.value, "abcdef");
  assert.equal(renderings, 1);
});

test("changes during a frame wait for the next one", () => {
  const scheduled: (() => void)[] = [];
  const frames = new Frames((flush) => scheduled.push(flush));
  const seen: string[] = [];
  frames.add(() => {
    seen.push("first");
    frames.add(() => seen.push("second"));
  });
  scheduled.shift()?.();
  assert.deepEqual(seen, ["first"]);
  scheduled.shift()?.();
  assert.deepEqual(seen, ["first", "second"]);
});
