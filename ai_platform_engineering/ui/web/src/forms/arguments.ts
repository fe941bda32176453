// The arguments of a tool call in inputs, and the changes that a person made in them. Only changed arguments are sent:
// the supervisor shows credentials masked (forms/arguments.py).

import { TEXTS } from "../texts";
import { isObject } from "./tool_calls";
import { MASK } from "./field_names";
import { isVisible } from "./visible_text";

export type Changes =
  | { ok: true; changed: Record<string, unknown> }
  | { ok: false; errors: Readonly<Record<string, string>> };

const NUMBER_OUTSIDE_TEXT = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** The text of an argument's input: a text as it is, other values as JSON. Empty if an input cannot show it. */
export function argumentText(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return isVisible(text) ? text : "";
}

/** Whether a part of the value is not shown. */
export function isShownInPart(value: unknown): boolean {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.includes(MASK);
}

/** The arguments whose inputs a person changed, or a sentence for each input without a usable value. */
export function changedArguments(
  args: readonly (readonly [name: string, value: unknown])[],
  entries: Readonly<Record<string, string>>,
): Changes {
  const changed: Record<string, unknown> = {};
  const errors: Record<string, string> = {};
  for (const [name, value] of args) {
    const entry = entries[name];
    if (entry === undefined || entry === argumentText(value)) continue;
    const read = readArgument(value, entry);
    if (!read.ok) errors[name] = read.sentence;
    else if (isShownInPart(value) && !isWhole(read.value, value)) errors[name] = TEXTS.forms.shownInPart;
    else if (!isSame(read.value, value)) changed[name] = read.value;
  }
  return Object.keys(errors).length > 0 ? { ok: false, errors } : { ok: true, changed };
}

/** Equality of JSON values, whatever the order of keys. */
export function isSame(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, place) => isSame(item, other[place]));
  }
  if (isObject(one) && isObject(other)) {
    const keys = Object.keys(one);
    return keys.length === Object.keys(other).length && keys.every((key) => key in other && isSame(one[key], other[key]));
  }
  return one === other;
}

function readArgument(value: unknown, entry: string): { ok: true; value: unknown } | { ok: false; sentence: string } {
  // A text stays a text, also when it looks like JSON.
  if (typeof value === "string") return { ok: true, value: entry };
  let read: unknown;
  try {
    read = JSON.parse(entry);
  } catch {
    return { ok: false, sentence: TEXTS.forms.notJson(JSON.stringify(value)) };
  }
  if ((typeof value === "number" || typeof value === "boolean") && typeof read !== typeof value) {
    return { ok: false, sentence: TEXTS.forms.notJson(JSON.stringify(value)) };
  }
  const rounded = numbersOf(entry).find((text) => !isKept(text));
  return rounded === undefined ? { ok: true, value: read } : { ok: false, sentence: TEXTS.forms.tooManyDigits(rounded) };
}

function numbersOf(json: string): string[] {
  return (json.match(NUMBER_OUTSIDE_TEXT) ?? []).filter((token) => !token.startsWith('"'));
}

function isKept(text: string): boolean {
  const number = Number(text);
  const digits = text.replace(/[eE].*$/, "").replace(/[^0-9]/g, "").replace(/^0+/, "");
  return Number.isFinite(number) && (digits.length <= 15 || Number.isSafeInteger(number)) && (number !== 0 || digits === "");
}

/** Whether the supervisor can tell the complete value: parts that were not shown are unchanged or replaced. */
function isWhole(edited: unknown, shown: unknown): boolean {
  if (isSame(edited, shown)) return true;
  if (isObject(edited) && isObject(shown)) {
    return Object.entries(edited).every(([key, item]) => isWhole(item, shown[key]));
  }
  if (Array.isArray(edited) && Array.isArray(shown) && edited.length === shown.length) {
    return edited.every((item, place) => isSame(item, shown[place]) || !isShownInPart(item));
  }
  return !isShownInPart(edited);
}
