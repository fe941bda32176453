import assert from "node:assert/strict";
import { test } from "node:test";

import { EMPTY_DRAFT, readDraft, removeDraft, writeDraft, type DraftStorage } from "../src/forms/drafts";

class MemoryStorage implements DraftStorage {
  readonly items = new Map<string, string>();
  get length() {
    return this.items.size;
  }
  getItem(key: string) {
    return this.items.get(key) ?? null;
  }
  setItem(key: string, value: string) {
    this.items.set(key, value);
  }
  removeItem(key: string) {
    this.items.delete(key);
  }
  key(place: number) {
    return [...this.items.keys()][place] ?? null;
  }
}

const DRAFT = {
  ...EMPTY_DRAFT,
  fields: { name: "demo", teams: ["a", "b"] },
  args: { title: "x" },
  reason: "no",
  part: "edit" as const,
};

test("a draft comes back until it is removed", () => {
  const storage = new MemoryStorage();
  writeDraft(storage, "f", DRAFT);
  assert.deepEqual(readDraft(storage, "f"), DRAFT);
  assert.deepEqual(readDraft(storage, "g"), EMPTY_DRAFT);
  removeDraft(storage, "f");
  assert.deepEqual(readDraft(storage, "f"), EMPTY_DRAFT);
});

test("credentials are not stored", () => {
  const storage = new MemoryStorage();
  writeDraft(storage, "f", {
    ...EMPTY_DRAFT,
    fields: { api_token: "s3cret", name: "demo" },
    args: { password: "s3cret", env: '{"API_KEY": "s3cret"}' },
  });
  assert.ok(![...storage.items.values()].join().includes("s3cret"));
  assert.deepEqual(readDraft(storage, "f").fields, { name: "demo" });
});

test("a draft that is too long is not stored, and an empty one leaves nothing", () => {
  const storage = new MemoryStorage();
  writeDraft(storage, "f", DRAFT);
  writeDraft(storage, "f", { ...DRAFT, reason: "x".repeat(100_000) });
  assert.equal(storage.length, 0);
  writeDraft(storage, "f", EMPTY_DRAFT);
  assert.equal(storage.length, 0);
});

test("old drafts make room for new ones", () => {
  const storage = new MemoryStorage();
  storage.setItem("theme", "dark");
  for (let time = 0; time < 50; time++) writeDraft(storage, `f${time}`, DRAFT, time);
  assert.equal(storage.length, 31);
  assert.deepEqual(readDraft(storage, "f49"), DRAFT);
  assert.deepEqual(readDraft(storage, "f0"), EMPTY_DRAFT);
  writeDraft(storage, "later", DRAFT, 1e12);
  assert.deepEqual([...storage.items.keys()], ["theme", "form-draft:later"]);
});

test("a storage with other content or without access is no problem", () => {
  const storage = new MemoryStorage();
  storage.setItem("form-draft:f", "not JSON");
  assert.deepEqual(readDraft(storage, "f"), EMPTY_DRAFT);
  storage.setItem("form-draft:f", '{"at": 1, "draft": {"fields": {"a": 1, "b": "x"}, "part": "other"}}');
  assert.deepEqual(readDraft(storage, "f"), { ...EMPTY_DRAFT, fields: { b: "x" } });
  storage.setItem = () => {
    throw new Error("QuotaExceededError");
  };
  writeDraft(storage, "g", DRAFT);
  writeDraft(null, "f", DRAFT);
  assert.deepEqual(readDraft(null, "f"), EMPTY_DRAFT);
});
