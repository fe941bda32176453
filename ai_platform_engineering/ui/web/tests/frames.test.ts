import assert from "node:assert/strict";
import { test } from "node:test";

import { effect, signal } from "@preact/signals";

import { Frames, MAX_CHANGES } from "../src/state/frames";

/** The frames, and a function that ends the wait for the next one. */
function waitingFrames(): [Frames, (isHidden?: boolean) => void] {
  const scheduled: ((isHidden: boolean) => void)[] = [];
  const next = (isHidden = false) => {
    assert.equal(scheduled.length, 1);
    scheduled.shift()?.(isHidden);
  };
  return [new Frames((apply) => scheduled.push(apply)), next];
}

test("many changes are applied at once, in order, with the next frame", () => {
  const [frames, next] = waitingFrames();
  const text = signal("");
  let renderings = -1;
  effect(() => {
    void text.value;
    renderings += 1;
  });
  for (const letter of "abcdef") frames.add(() => (text.value += letter));
  assert.equal(text.value, "");
  next();
  assert.equal(text.value, "abcdef");
  assert.equal(renderings, 1);
});

test("changes during a frame wait for the next one", () => {
  const [frames, next] = waitingFrames();
  const seen: string[] = [];
  frames.add(() => {
    seen.push("first");
    frames.add(() => seen.push("second"));
  });
  next();
  assert.deepEqual(seen, ["first"]);
  next();
  assert.deepEqual(seen, ["first", "second"]);
});

test("a burst of changes is spread over several frames", () => {
  const [frames, next] = waitingFrames();
  const seen: number[] = [];
  for (let number = 0; number < MAX_CHANGES + 2; number += 1) frames.add(() => seen.push(number));
  next();
  assert.equal(seen.length, MAX_CHANGES);
  frames.add(() => seen.push(MAX_CHANGES + 2));
  next();
  assert.deepEqual(seen, [...Array(MAX_CHANGES + 3).keys()]);
});

test("thousands of changes are applied within a second, and at once in a hidden page", () => {
  const [frames, next] = waitingFrames();
  let applied = 0;
  const add = (count: number) => {
    for (let number = 0; number < count; number += 1) frames.add(() => (applied += 1));
  };
  add(10_000);
  for (let frame = 0; frame < 60; frame += 1) {
    if (applied < 10_000) next();
  }
  assert.equal(applied, 10_000);
  add(10_000);
  next(true);
  assert.equal(applied, 20_000);
});

test("a flush applies all changes now", () => {
  const [frames, next] = waitingFrames();
  const seen: string[] = [];
  for (let number = 0; number <= MAX_CHANGES; number += 1) frames.add(() => seen.push("before"));
  frames.flush();
  assert.equal(seen.length, MAX_CHANGES + 1);
  frames.add(() => seen.push("after"));
  next();
  assert.equal(seen.at(-1), "after");
});
