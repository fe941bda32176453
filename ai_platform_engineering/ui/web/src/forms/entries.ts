// What a person typed into the inputs of a form, and the values that it stands for.

import type { FieldValue, Form, FormField } from "../events";
import { TEXTS } from "../texts";
import { isSecret } from "./field_names";
import { isBlank, optionOf, optionsOf, validated } from "./validation";
import { isVisible } from "./visible_text";

/** The content of an input: text, an option, `yes` or `no`, or the chosen options of a multiselect. */
export type Entry = string | readonly string[];
export type Entries = Readonly<Record<string, Entry>>;

export type Filled =
  | { ok: true; values: Record<string, FieldValue> }
  | { ok: false; errors: Readonly<Record<string, string>> };

/** The fields of a form that can be answered: values are sent by name, so only the first field of a name counts. */
export function fieldsOf(form: Form): FormField[] {
  const named = new Map<string, FormField>();
  for (const field of form.fields ?? []) {
    if (!named.has(field.field_name)) named.set(field.field_name, field);
  }
  return [...named.values()];
}

/** The value of a field that a person leaves as it is: the earlier entry, also an invalid one, else a valid default. */
export function proposal(field: FormField): FieldValue {
  if (!isBlank(field.value)) return field.value ?? null;
  const fallback = field.default_value ?? null;
  return isBlank(fallback) || !validated(field, fallback).ok ? null : fallback;
}

export function initialEntry(field: FormField): Entry {
  const value = proposal(field);
  if (isSecret(field.field_name)) return isChoiceOfMany(field) ? [] : "";
  if (isChoiceOfMany(field)) {
    const read = value === null ? null : validated({ ...field, required: false }, value);
    return read?.ok && Array.isArray(read.value) ? read.value : [];
  }
  if (value === null) return "";
  if (field.field_type === "boolean") {
    const read = validated(field, value);
    return read.ok ? (read.value === true ? "yes" : "no") : "";
  }
  if (field.field_type === "select" && optionsOf(field).length > 0) return optionOf(optionsOf(field), value) ?? "";
  const text = written(value);
  return isVisible(text) ? text : "";
}

/** Whether the input is empty although the field has a value, which stays if the input is left empty. */
export function hasHiddenProposal(field: FormField): boolean {
  const value = proposal(field);
  return value !== null && isEmpty(initialEntry(field)) && !Array.isArray(value) && validated(field, value).ok;
}

/** Whether the supervisor uses a proposed value if the field is left empty. */
export function hasValidProposal(field: FormField): boolean {
  const value = proposal(field);
  return value !== null && validated(field, value).ok;
}

export function isChoiceOfMany(field: FormField): boolean {
  return field.field_type === "multiselect" && optionsOf(field).length > 0;
}

/** The value of each field, or a sentence for each field that has none. Empty fields are null. */
export function fillIn(form: Form, entries: Entries): Filled {
  const values: Record<string, FieldValue> = {};
  const errors: Record<string, string> = {};
  for (const field of fieldsOf(form)) {
    const entry = entries[field.field_name] ?? initialEntry(field);
    const value = typed(field, entry);
    if (isBlank(value)) {
      if (field.required !== false && !hasValidProposal(field)) errors[field.field_name] = TEXTS.forms.required;
      values[field.field_name] = null;
      continue;
    }
    const outcome = validated(field, value);
    if (outcome.ok) values[field.field_name] = outcome.value;
    else errors[field.field_name] = outcome.sentence;
  }
  return Object.keys(errors).length > 0 ? { ok: false, errors } : { ok: true, values };
}

function typed(field: FormField, entry: Entry): FieldValue {
  if (typeof entry !== "string") {
    // Deselecting every option is an answer; never having chosen one is not.
    return entry.length > 0 || !isEmpty(initialEntry(field)) ? [...entry] : null;
  }
  switch (field.field_type) {
    case "multiselect": {
      const lines = entry.split("\n").map((line) => line.trim()).filter((line) => line !== "");
      return lines.length > 1 ? lines : lines.join("");
    }
    case "number":
    case "url":
    case "email":
      return entry.trim();
    default:
      return entry;
  }
}

function isEmpty(entry: Entry): boolean {
  return entry.length === 0;
}

function written(value: FieldValue): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value.join("\n");
  return JSON.stringify(value);
}
