// Validates the value of a field with the rules of the supervisor (forms/validation.py), so that a person gets the
// sentence at once. Where the page cannot be sure, the value counts as valid: the supervisor validates it again.

import type { FieldRules, FieldValue, FormField } from "../events";
import { TEXTS } from "../texts";
import { isSecret } from "./field_names";
import { visible } from "./visible_text";

export type Validated = { ok: true; value: FieldValue } | { ok: false; sentence: string };

const MAX_NUMBER_LENGTH = 400;
const MAX_MATCHED_LENGTH = 10_000;
const MAX_LISTED_OPTIONS = 20;
const MAX_QUOTE_LENGTH = 120;
const DECIMAL = /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?$/;
const INTEGER = /^[+-]?[0-9]+$/;
const DECIMAL_COMMA = /^[+-]?[0-9]*,[0-9]+$/;
const EMAIL = /^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/;
const ADDRESS = /^https?:\/\/[^\s/?#]/i;
const BOOLEANS: Readonly<Record<string, boolean>> = { yes: true, true: true, no: false, false: false };
// Python reads these otherwise: groups with names, and escapes that it does not have.
const OTHER_SYNTAX = /\(\?<[^=!]|\\[pPkcu]/;

export function isBlank(value: unknown): boolean {
  return value === null || value === undefined || (typeof value === "string" && value.trim() === "");
}

export function validated(field: FormField, value: FieldValue): Validated {
  switch (field.field_type) {
    case "number":
      return number(field, value);
    case "boolean":
      return boolean(field, value);
    case "select":
      return select(field, value);
    case "multiselect":
      return multiselect(field, value);
    case "url":
      return text(field, value, (given) => ADDRESS.test(given) && isPrintable(given));
    case "email":
      return text(field, value, (given) => EMAIL.test(given));
    default:
      return text(field, value, () => true);
  }
}

/** The values that a field takes, in words: a whole number from 1 to 5. */
export function expected(field: FormField): string {
  const words = TEXTS.forms.expected;
  const rules = field.rules ?? {};
  const options = optionsOf(field);
  switch (field.field_type) {
    case "number":
      return words.number(rules.integer === true, bound(rules.minimum), bound(rules.maximum));
    case "boolean":
      return words.boolean;
    case "select":
      return options.length > 0 ? words.select(listed(options)) : words.text;
    case "multiselect":
      return options.length > 0 ? words.multiselect(listed(options), field.required !== false) : words.texts;
    default:
      return textExpected(field.field_type === "url" ? words.url : field.field_type === "email" ? words.email : words.text, rules);
  }
}

/** The options of a field, each once. */
export function optionsOf(field: FormField): string[] {
  return [...new Set(field.field_values ?? [])].filter((option) => !isBlank(option));
}

/** The option that a value stands for: in another case, or as a number. */
export function optionOf(options: readonly string[], value: unknown): string | null {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return null;
  const spelling = String(value);
  if (options.includes(spelling)) return spelling;
  const same = options.filter((option) => option.trim().toLowerCase() === spelling.trim().toLowerCase());
  return same.length === 1 ? (same[0] ?? null) : null;
}

/** A text in a sentence: on one line, and shortened. */
export function quoted(given: string): string {
  const line = visible(given).split(/\s+/).join(" ").trim();
  return `“${line.length > MAX_QUOTE_LENGTH ? `${line.slice(0, MAX_QUOTE_LENGTH)}…` : line}”`;
}

function textExpected(kind: string, rules: FieldRules): string {
  const words = TEXTS.forms.expected;
  const pattern = rules.pattern ? words.pattern(rules.pattern) : "";
  return `${kind}${words.length(rules.min_length ?? 0, rules.max_length ?? null)}${pattern}`;
}

function listed(options: readonly string[]): string {
  const more = options.length - MAX_LISTED_OPTIONS;
  return TEXTS.forms.expected.list(options.slice(0, MAX_LISTED_OPTIONS), Math.max(more, 0));
}

function bound(limit: number | null | undefined): string | null {
  return limit === null || limit === undefined ? null : String(limit);
}

function invalid(field: FormField, given: FieldValue, wrong: string = TEXTS.forms.wrong.kind): Validated {
  const shown = isSecret(field.field_name) ? TEXTS.forms.wrong.secret : quoted(String(given));
  return { ok: false, sentence: TEXTS.forms.takes(expected(field), shown, wrong) };
}

function text(field: FormField, value: FieldValue, isKind: (given: string) => boolean): Validated {
  if (typeof value !== "string") return invalid(field, value, TEXTS.forms.wrong.text);
  if (!isKind(value)) return invalid(field, value);
  const rules = field.rules ?? {};
  // The supervisor counts characters, not UTF-16 units.
  const length = [...value].length;
  const isShort = length < (rules.min_length ?? 0);
  if (isShort || length > (rules.max_length ?? Infinity)) return invalid(field, value, TEXTS.forms.wrong.length(length));
  if (rules.pattern && !matches(rules.pattern, value)) return invalid(field, value, TEXTS.forms.wrong.pattern);
  return { ok: true, value };
}

/** Whether a text matches a pattern of Python. Texts and patterns that JavaScript may read otherwise match. */
function matches(pattern: string, given: string): boolean {
  if (given.length > MAX_MATCHED_LENGTH || OTHER_SYNTAX.test(pattern) || !/^[\t\n\x20-\x7e]*$/.test(given)) return true;
  try {
    return new RegExp(`^(?:${pattern})$`, "u").test(given);
  } catch {
    return true;
  }
}

function isPrintable(given: string): boolean {
  return !given.includes(" ") && visible(given) === given;
}

function number(field: FormField, value: FieldValue): Validated {
  const given = String(value).trim();
  if (typeof value === "boolean" || given.length > MAX_NUMBER_LENGTH || !DECIMAL.test(given)) {
    return invalid(field, value, DECIMAL_COMMA.test(given) ? TEXTS.forms.wrong.comma : TEXTS.forms.wrong.kind);
  }
  const read = Number(given);
  const rules = field.rules ?? {};
  const isWhole = INTEGER.test(given) || Number.isSafeInteger(read);
  if (!Number.isFinite(read) || (rules.integer && !isWhole)) return invalid(field, value);
  if (read < (rules.minimum ?? -Infinity) || read > (rules.maximum ?? Infinity)) return invalid(field, value);
  // A number that would be rounded is sent as it was typed; the supervisor has whole numbers of any size.
  return { ok: true, value: isExact(given, read) ? read : given };
}

/** Whether the number has all digits of the text. A double keeps 15 digits of any number. */
function isExact(given: string, read: number): boolean {
  const digits = given.replace(/[eE].*$/, "").replace(/[^0-9]/g, "").replace(/^0+/, "");
  return digits.length <= 15 && (read !== 0 || digits === "");
}

function boolean(field: FormField, value: FieldValue): Validated {
  const read = typeof value === "string" ? BOOLEANS[value.trim().toLowerCase()] : value;
  return typeof read === "boolean" ? { ok: true, value: read } : invalid(field, value);
}

function select(field: FormField, value: FieldValue): Validated {
  const options = optionsOf(field);
  if (options.length === 0) return text({ ...field, rules: null }, value, () => true);
  const option = optionOf(options, value);
  return option === null ? invalid(field, value) : { ok: true, value: option };
}

function multiselect(field: FormField, value: FieldValue): Validated {
  const options = optionsOf(field);
  const given = typeof value === "string" ? pieces(options, value) : value;
  if (!Array.isArray(given)) return invalid(field, value);
  if (field.required !== false && given.length === 0) {
    return { ok: false, sentence: TEXTS.forms.required };
  }
  const chosen: string[] = [];
  for (const item of given) {
    const option = options.length === 0 ? (isBlank(item) ? null : String(item)) : optionOf(options, item);
    if (option === null) return invalid(field, item);
    chosen.push(option);
  }
  return { ok: true, value: chosen };
}

function pieces(options: readonly string[], given: string): string[] {
  const whole = optionOf(options, given);
  if (whole !== null) return [whole];
  return given.split(",").map((piece) => piece.trim()).filter((piece) => piece !== "");
}
