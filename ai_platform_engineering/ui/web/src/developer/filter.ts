// The filter of the developer view.

import type { RecordedLine } from "../events";

export interface EventFilter {
  /** null: every kind. */
  kind: RecordedLine["event"] | null;
  text: string;
}

const searchable = new WeakMap<RecordedLine, string>();

export function matches(line: RecordedLine, filter: EventFilter): boolean {
  if (filter.kind !== null && line.event !== filter.kind) return false;
  const wanted = filter.text.trim().toLowerCase();
  return wanted === "" || textOf(line).includes(wanted);
}

function textOf(line: RecordedLine): string {
  let text = searchable.get(line);
  if (text === undefined) {
    text = jsonOf(line).toLowerCase();
    searchable.set(line, text);
  }
  return text;
}

export function jsonOf(line: RecordedLine, indent?: number): string {
  try {
    return JSON.stringify(line, null, indent);
  } catch {
    // Nested too deeply.
    return line.event;
  }
}

/** The agent of an event, and what the event is about, on one line. */
export function summaryOf(line: RecordedLine): { agent: string; subject: string } {
  switch (line.event) {
    case "text_delta":
      return { agent: line.agent, subject: line.text };
    case "message_ended":
      return { agent: line.agent, subject: line.message_id };
    case "tool_started":
    case "tool_finished":
      return { agent: line.agent, subject: line.tool };
    case "agent_started":
    case "agent_finished":
      return { agent: line.agent, subject: line.call_id };
    case "plan_updated":
      return { agent: "", subject: line.title ?? "" };
    case "input_required":
      return { agent: "", subject: line.forms.map((form) => form.title).join(", ") };
    case "final_result":
      return { agent: "", subject: line.text };
    case "failed":
    case "canceled":
      return { agent: "", subject: line.message ?? "" };
    case "asked":
      return { agent: "", subject: line.question };
  }
}
