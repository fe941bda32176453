// The lines of a recording, as events_json.py reads and writes them: one event or question as JSON per line.

import type { Decision } from "../api";
import type { RecordedLine } from "../events";
import { isSecret, MASK } from "../forms/field_names";
import { TEXTS } from "../texts";
import { fieldValue, finite, flag, integer, listOf, object, oneOf, orNull, record, text, WrongValue, type Check } from "./schema";

/** A file that is not a recording. The message is a sentence with the number of the line. */
export class RecordingError extends Error {}

export const MAX_BYTES = 20_000_000;
export const MAX_LINES = 50_000;
export const MAX_LINE_LENGTH = 1_000_000;

const call = { agent: text, call_id: text };
const ofCall = { parent_call_id: orNull(text), plan_step_id: orNull(text) };
const ofTool = { ...ofCall, skill: orNull(text) };
const ofEnd = { reason: orNull(text) };

const step = record(
  { id: text, title: text, status: oneOf("pending", "in_progress", "completed", "failed"), order: integer },
  { agent: orNull(text) },
);
const rules = record({}, {
  minimum: orNull(finite),
  maximum: orNull(finite),
  integer: flag,
  min_length: orNull(integer),
  max_length: orNull(integer),
  pattern: orNull(text),
});
const field = record(
  { field_name: text },
  {
    field_type: oneOf("text", "multiline", "number", "boolean", "select", "multiselect", "url", "email"),
    field_description: text,
    field_values: orNull(listOf(text)),
    default_value: fieldValue,
    required: flag,
    value: fieldValue,
    rules: orNull(rules),
    error: orNull(text),
  },
);
const form = record(
  { form_id: text, title: text },
  { fields: listOf(field), description: text, response: text, agent: orNull(text), action_requests: listOf(object) },
);

const KINDS = {
  plan_updated: record({ steps: listOf(step) }, { title: text }),
  agent_started: record(call, ofCall),
  agent_finished: record({ ...call, ok: flag }, { ...ofCall, ...ofEnd }),
  tool_started: record({ ...call, tool: text }, ofTool),
  tool_finished: record({ ...call, tool: text, ok: flag }, { ...ofTool, ...ofEnd }),
  text_delta: record({ agent: text, message_id: text, text }, { parent_call_id: orNull(text), supersedes: orNull(text) }),
  message_ended: record({ agent: text, message_id: text }, { parent_call_id: orNull(text) }),
  input_required: record({ forms: listOf(form) }, {}),
  final_result: record({ text, answer_message_id: text }, { limit: orNull(text), budget_warning: orNull(text) }),
  failed: record({ code: text, message: text }, { partial: orNull(text) }),
  canceled: record({}, { by: text, message: text }),
  asked: record({ question: text }, { context_id: text }),
} satisfies Record<RecordedLine["event"], Check<unknown>>;

export const EVENT_KINDS = Object.keys(KINDS) as RecordedLine["event"][];

export function decodeRecording(content: string): RecordedLine[] {
  const lines = [];
  let number = 0;
  for (const line of content.split("\n")) {
    number += 1;
    if (!line.trim()) continue;
    if (lines.length === MAX_LINES) throw new RecordingError(TEXTS.developer.tooManyLines(MAX_LINES));
    try {
      lines.push(decodeLine(line));
    } catch (error) {
      if (error instanceof RecordingError) throw new RecordingError(TEXTS.developer.badLine(number, error.message));
      throw error;
    }
  }
  if (lines.length === 0) throw new RecordingError(TEXTS.developer.emptyFile);
  return lines;
}

export function decodeLine(line: string): RecordedLine {
  if (line.length > MAX_LINE_LENGTH) throw new RecordingError(TEXTS.developer.longLine(MAX_LINE_LENGTH));
  const data = parsed(line);
  if (typeof data !== "object" || data === null || Array.isArray(data)) {
    throw new RecordingError(TEXTS.developer.notAnObject);
  }
  const { event: kind, at } = data as Record<string, unknown>;
  const known = EVENT_KINDS.find((one) => one === kind);
  if (known === undefined) throw new RecordingError(TEXTS.developer.unknownKind(shown(kind), EVENT_KINDS.join(", ")));
  if (at != null && (typeof at !== "number" || !Number.isFinite(at))) {
    throw new RecordingError(TEXTS.developer.badTime(shown(at)));
  }
  try {
    const event = { event: known, ...KINDS[known](data, []) } as RecordedLine;
    return at == null ? event : { at, ...event };
  } catch (error) {
    if (!(error instanceof WrongValue)) throw error;
    throw new RecordingError(TEXTS.developer.badField(known, error.path.join("."), error.expected));
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new RecordingError(TEXTS.developer.notJson);
  }
}

function shown(value: unknown): string {
  const json = JSON.stringify(value) ?? "";
  return json.length > 60 ? `${json.slice(0, 60)}…` : json;
}

/** A run as a recording: the question, its events, and the answers to its forms as further questions. */
export function encodeRecording(question: string, events: readonly RecordedLine[], decisions: readonly Decision[]): string {
  const lines: RecordedLine[] = events[0]?.event === "asked" ? [] : [{ at: 0, event: "asked", question }];
  for (const [place, line] of events.entries()) {
    const before = events[place - 1];
    if (before?.event === "input_required" && line.event !== "asked") {
      const ids = new Set(before.forms.map((one) => one.form_id));
      const answers = decisions.filter((decision) => ids.has(decision.form_id)).map(answerText);
      lines.push({ at: line.at ?? 0, event: "asked", question: answers.join("\n") });
    }
    lines.push(line);
  }
  return lines.map((line) => `${encodeLine(line)}\n`).join("");
}

function encodeLine(line: RecordedLine): string {
  const { seq: _, at, ...event } = line;
  return JSON.stringify({ at: at === undefined ? null : Math.round(at * 1000) / 1000, ...event }, withoutNulls);
}

/** Leaves null out: it is the default of the fields that may be null. Arguments of a tool call are no such fields. */
function withoutNulls(name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value) || name === "args") return value;
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== null));
}

function answerText(decision: Decision): string {
  switch (decision.kind) {
    case "reject":
      return decision.reason ? `reject: ${decision.reason}` : "reject";
    case "text":
      return decision.reason ?? "";
    case "values":
    case "edit":
      return Object.entries(decision.values)
        .map(([name, value]) => `${name}: ${isSecret(name) ? MASK : String(value)}`)
        .join("\n");
    default:
      return decision.kind;
  }
}
