// Decodes a form from its `UserInputMetaData` data part.

import type { FieldRules, FieldType, FieldValue, Form, FormField } from "./events";

export type Json = Record<string, unknown>;

const FIELD_TYPES: ReadonlySet<string> = new Set([
  "text",
  "multiline",
  "number",
  "boolean",
  "select",
  "multiselect",
  "url",
  "email",
]);

/** `formId` is the id if `data` has none. */
export function readForm(data: Json, formId: string): Form {
  return {
    form_id: text(data["form_id"]) || formId,
    title: text(data["input_title"]),
    fields: objects(data["input_fields"]).map(readField),
    description: text(data["input_description"]),
    response: text(data["response"]),
    agent: "agent" in data ? text(data["agent"]) : null,
    action_requests: objects(data["action_requests"]),
  };
}

function readField(data: Json): FormField {
  const options = Array.isArray(data["field_values"]) ? data["field_values"].map(String) : null;
  const type = text(data["field_type"]);
  const error = data["field_error"];
  return {
    field_name: text(data["field_name"]),
    field_type: FIELD_TYPES.has(type) ? (type as FieldType) : options?.length ? "select" : "text",
    field_description: text(data["field_description"]),
    field_values: options,
    default_value: fieldValue(data["default_value"]),
    required: data["required"] !== false,
    value: fieldValue(data["value"]),
    rules: readRules(data["validation"]),
    error: typeof error === "string" ? error : null,
  };
}

/** The valid rules in `data`; null if there are none. */
function readRules(data: unknown): FieldRules | null {
  if (!isObject(data)) return null;
  const rules: FieldRules = {
    minimum: number(data["minimum"]),
    maximum: number(data["maximum"]),
    integer: data["integer"] === true,
    min_length: length(data["min_length"]),
    max_length: length(data["max_length"]),
    pattern: typeof data["pattern"] === "string" ? data["pattern"] : null,
  };
  return Object.values(rules).some((rule) => rule !== null && rule !== false) ? rules : null;
}

function number(value: unknown): number | null {
  // Protobuf's numbers are doubles: an integer that a double cannot hold is sent as a string of digits.
  if (typeof value === "string") return /^-?\d{1,400}$/.test(value) ? Number(value) : null;
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function length(value: unknown): number | null {
  const found = number(value);
  return found !== null && found >= 0 && Number.isInteger(found) ? found : null;
}

function fieldValue(value: unknown): FieldValue {
  if (Array.isArray(value)) return value.map(String);
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : null;
}

function objects(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
