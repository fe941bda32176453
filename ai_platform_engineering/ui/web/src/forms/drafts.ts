// What a person typed into a form that is not answered yet, stored in this browser by the id of the form. A reload
// brings it back. Credentials are not stored.

import type { Entries, Entry } from "./entries";
import { isSecret } from "./field_names";

/** `fields` are the entries of the fields; an approval also has changed arguments and a reason. */
export interface Draft {
  fields: Entries;
  args: Readonly<Record<string, string>>;
  reason: string;
  /** The part of an approval that is open. */
  part: "edit" | "reject" | null;
}

export const EMPTY_DRAFT: Draft = { fields: {}, args: {}, reason: "", part: null };

/** The part of `localStorage` that is used here. */
export type DraftStorage = Pick<Storage, "getItem" | "setItem" | "removeItem" | "key" | "length">;

const PREFIX = "form-draft:";
const MAX_SIZE = 64_000;
const MAX_DRAFTS = 30;
const MAX_AGE = 30 * 24 * 60 * 60 * 1000;

export function readDraft(storage: DraftStorage | null, formId: string): Draft {
  try {
    return parsed(storage?.getItem(PREFIX + formId) ?? null)?.draft ?? EMPTY_DRAFT;
  } catch {
    return EMPTY_DRAFT;
  }
}

/** Stores a draft and drops old ones. A draft that is too long is not stored. */
export function writeDraft(storage: DraftStorage | null, formId: string, draft: Draft, now: number = Date.now()): void {
  const kept: Draft = {
    ...draft,
    fields: withoutSecrets(draft.fields, () => false),
    args: withoutSecrets(draft.args, hasSecretKey),
  };
  const text = JSON.stringify({ at: now, draft: kept });
  try {
    if (!storage || isEmpty(kept) || text.length > MAX_SIZE) {
      storage?.removeItem(PREFIX + formId);
      return;
    }
    dropOld(storage, now);
    storage.setItem(PREFIX + formId, text);
  } catch {
    // The browser stores nothing; the draft lasts until the page is closed.
  }
}

export function removeDraft(storage: DraftStorage | null, formId: string): void {
  try {
    storage?.removeItem(PREFIX + formId);
  } catch {
    // The browser stores nothing.
  }
}

/** The storage of this browser; null where it is blocked. */
export function draftStorage(): DraftStorage | null {
  try {
    return window.localStorage;
  } catch {
    return null;
  }
}

function dropOld(storage: DraftStorage, now: number): void {
  const stored: { key: string; at: number }[] = [];
  for (let place = 0; place < storage.length; place++) {
    const key = storage.key(place);
    if (key?.startsWith(PREFIX)) stored.push({ key, at: parsed(storage.getItem(key))?.at ?? 0 });
  }
  stored.sort((one, other) => other.at - one.at);
  stored.forEach(({ key, at }, place) => {
    if (place >= MAX_DRAFTS - 1 || now - at > MAX_AGE) storage.removeItem(key);
  });
}

function withoutSecrets<T extends Entry>(
  entries: Readonly<Record<string, T>>,
  isSecretEntry: (entry: T) => boolean,
): Record<string, T> {
  return Object.fromEntries(Object.entries(entries).filter(([name, entry]) => !isSecret(name) && !isSecretEntry(entry)));
}

/** Whether a JSON text has a key that names a credential. */
function hasSecretKey(json: string): boolean {
  return [...json.matchAll(/"([^"\\]*)"\s*:/g)].some(([, key]) => isSecret(key ?? ""));
}

function isEmpty(draft: Draft): boolean {
  return (
    Object.keys(draft.fields).length === 0 &&
    Object.keys(draft.args).length === 0 &&
    draft.reason === "" &&
    draft.part === null
  );
}

function parsed(text: string | null): { at: number; draft: Draft } | null {
  if (text === null) return null;
  try {
    const stored: unknown = JSON.parse(text);
    if (!isRecord(stored) || typeof stored["at"] !== "number" || !isRecord(stored["draft"])) return null;
    const { fields, args, reason, part } = stored["draft"];
    const draft: Draft = {
      fields: entriesOf(fields, isEntry),
      args: entriesOf(args, (value) => typeof value === "string"),
      reason: typeof reason === "string" ? reason : "",
      part: part === "edit" || part === "reject" ? part : null,
    };
    return { at: stored["at"], draft };
  } catch {
    return null;
  }
}

function entriesOf<T>(value: unknown, isKind: (item: unknown) => item is T): Record<string, T> {
  if (!isRecord(value)) return {};
  const entries: Record<string, T> = {};
  for (const [name, item] of Object.entries(value)) if (isKind(item)) entries[name] = item;
  return entries;
}

function isEntry(value: unknown): value is Entry {
  return typeof value === "string" || (Array.isArray(value) && value.every((item) => typeof item === "string"));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
