// Decodes the supervisor's A2A updates into the events of a run, from their metadata. Unknown kinds are ignored.

import type { Artifact, Part, StreamResponse, TaskStatus, TaskStatusUpdateEvent } from "@a2a-js/sdk";

import type { TaskState } from "./api";
import { readForm, type Json } from "./decoding_forms";
import type { Form, PlanStep, PlanUpdated, RunEvent, StepStatus } from "./events";

/** By the numbers of the protocol's enumeration. The SDK's own would add it whole to the page. */
export const TASK_STATES: Readonly<Record<number, TaskState>> = {
  1: "submitted",
  2: "working",
  3: "completed",
  4: "failed",
  5: "canceled",
  6: "input-required",
  7: "rejected",
  8: "auth-required",
};

const TERMINAL: ReadonlySet<TaskState> = new Set(["completed", "failed", "canceled", "rejected"]);
const WAITING: ReadonlySet<TaskState> = new Set(["input-required", "auth-required"]);
const BROKEN: ReadonlySet<TaskState> = new Set(["failed", "canceled", "rejected"]);
const STEP_STATUSES: ReadonlySet<string> = new Set(["pending", "in_progress", "completed", "failed"]);

/** An event with the number of its last update. */
export interface NumberedEvent {
  seq: number;
  event: RunEvent;
}

/** Updates are missing: subscribe again after `lastSeq`. */
export class GapError extends Error {}

/** Whether a task in this state does nothing until a person acts. */
export function isAtRest(state: TaskState): boolean {
  return TERMINAL.has(state) || WAITING.has(state);
}

/**
 * Decodes the updates of one task. The same decoder continues after a reconnect and after an answer to a form.
 *
 * Some events consist of several updates: forms and the status, a partial result and the failure. Updates with a number
 * that was decoded before are dropped.
 */
export class Decoder {
  /** The number of the last update. */
  lastSeq: number;
  /** The state of the task after the last update; null before the first response. */
  state: TaskState | null = null;
  private forms = new Map<string, Form>();
  private partial: string | null = null;
  private ended = false;
  private gapAfter: number | null = null;

  constructor(lastSeq = 0, state: TaskState | null = null) {
    this.lastSeq = lastSeq;
    this.state = state;
  }

  /** Throws `GapError` if updates are missing, once for each gap: the supervisor may have deleted them. */
  feed(response: StreamResponse): NumberedEvent[] {
    const payload = response.payload;
    switch (payload?.$case) {
      case "task":
        this.state = stateOf(payload.value.status) ?? this.state;
        return [];
      case "artifactUpdate":
        return payload.value.artifact ? this.numbered(this.artifact(payload.value.artifact)) : [];
      case "statusUpdate":
        return this.numbered(this.status(payload.value));
      default:
        return [];
    }
  }

  private numbered(event: RunEvent | null): NumberedEvent[] {
    if (event === null) return [];
    this.ended = isEnding(event);
    return [{ seq: this.lastSeq, event }];
  }

  private artifact(artifact: Artifact): RunEvent | null {
    const metadata = artifact.metadata;
    if (!isOurs(metadata) || this.isRepeated(metadata)) return null;
    switch (metadata["event"]) {
      case "input_required": {
        const form = readForm(dataOf(artifact.parts), artifact.artifactId);
        this.forms.set(form.form_id, form);
        return null;
      }
      case "partial_result":
        this.partial = textOf(artifact.parts);
        return null;
      default:
        return decodeArtifact(artifact, metadata);
    }
  }

  private status(update: TaskStatusUpdateEvent): RunEvent | null {
    const state = stateOf(update.status);
    const metadata = update.metadata;
    if (!isOurs(metadata)) {
      // When the supervisor fails, the A2A SDK there ends the task with a status without our metadata.
      if (this.ended || state === null || !BROKEN.has(state)) return null;
    } else if (this.isRepeated(metadata)) {
      return null;
    }
    this.state = state ?? this.state;
    const ending = endingOf(update.status, metadata, [...this.forms.values()], this.partial);
    this.forms = new Map();
    return ending;
  }

  private isRepeated(metadata: Json): boolean {
    const seq = Number(metadata["seq"]);
    if (!Number.isFinite(seq)) return false;
    if (seq <= this.lastSeq) return true;
    if (seq > this.lastSeq + 1 && this.gapAfter !== this.lastSeq) {
      this.gapAfter = this.lastSeq;
      throw new GapError(`updates ${this.lastSeq + 1} to ${seq - 1} are missing`);
    }
    this.lastSeq = seq;
    return false;
  }
}

/** The id of the task that a response is about. */
export function taskIdOf(response: StreamResponse): string | null {
  const payload = response.payload;
  switch (payload?.$case) {
    case "task":
      return payload.value.id || null;
    case "artifactUpdate":
    case "statusUpdate":
      return payload.value.taskId || null;
    default:
      return null;
  }
}

function decodeArtifact(artifact: Artifact, metadata: Json): RunEvent | null {
  const agent = text(metadata, "source_agent");
  const kind = metadata["event"];
  switch (kind) {
    case "text_delta":
      return {
        event: kind,
        agent,
        message_id: text(metadata, "message_id"),
        text: textOf(artifact.parts),
        parent_call_id: optional(metadata, "parent_call_id"),
        supersedes: optional(metadata, "supersedes"),
      };
    case "message_ended":
      return {
        event: kind,
        agent,
        message_id: text(metadata, "message_id"),
        parent_call_id: optional(metadata, "parent_call_id"),
      };
    case "agent_started":
      return { event: kind, ...callOf(agent, metadata) };
    case "agent_finished":
      return { event: kind, ...callOf(agent, metadata), ...outcomeOf(metadata) };
    case "tool_started":
      return { event: kind, ...callOf(agent, metadata), ...toolOf(metadata) };
    case "tool_finished":
      return { event: kind, ...callOf(agent, metadata), ...toolOf(metadata), ...outcomeOf(metadata) };
    case "plan_updated":
      return planOf(dataOf(artifact.parts));
    case "final_result":
      return {
        event: kind,
        text: textOf(artifact.parts),
        answer_message_id: text(metadata, "answer_message_id"),
        limit: optional(metadata, "limit"),
        budget_warning: optional(metadata, "budget_warning"),
      };
    default:
      return null;
  }
}

function callOf(agent: string, metadata: Json) {
  return {
    agent,
    call_id: text(metadata, "call_id"),
    parent_call_id: optional(metadata, "parent_call_id"),
    plan_step_id: optional(metadata, "plan_step_id"),
  };
}

function toolOf(metadata: Json) {
  return { tool: text(metadata, "tool_name"), skill: optional(metadata, "skill_name") };
}

function outcomeOf(metadata: Json) {
  return { ok: metadata["ok"] === true, reason: optional(metadata, "reason") };
}

function planOf(data: Json): PlanUpdated {
  const rows = Array.isArray(data["steps"]) ? data["steps"] : [];
  return { event: "plan_updated", steps: rows.filter(isJson).map(stepOf), title: text(data, "title") };
}

function stepOf(row: Json, place: number): PlanStep {
  const status = row["status"];
  const order = row["order"];
  return {
    id: text(row, "id"),
    title: text(row, "title"),
    status: typeof status === "string" && STEP_STATUSES.has(status) ? (status as StepStatus) : "pending",
    order: typeof order === "number" ? order : place,
    agent: optional(row, "agent"),
  };
}

/** `completed` has no event: the final result came before it. */
function endingOf(
  status: TaskStatus | undefined,
  metadata: Json | undefined,
  forms: Form[],
  partial: string | null,
): RunEvent | null {
  const sentence = textOf(status?.message?.parts ?? []);
  switch (stateOf(status)) {
    case "input-required":
      return { event: "input_required", forms };
    case "failed":
    case "rejected":
      return { event: "failed", code: text(metadata ?? {}, "error_code"), message: sentence, partial };
    case "canceled":
      return { event: "canceled", by: text(metadata ?? {}, "by") || "user", message: sentence };
    default:
      return null;
  }
}

function isEnding(event: RunEvent): boolean {
  return ["input_required", "final_result", "failed", "canceled"].includes(event.event);
}

function isOurs(metadata: Json | undefined): metadata is Json {
  return metadata !== undefined && "event" in metadata && "source_agent" in metadata;
}

function stateOf(status: TaskStatus | undefined): TaskState | null {
  return (status && TASK_STATES[status.state]) ?? null;
}

function textOf(parts: readonly Part[]): string {
  return parts.map((part) => (part.content?.$case === "text" ? part.content.value : "")).join("");
}

/** The first data part that is an object, or an empty one. */
function dataOf(parts: readonly Part[]): Json {
  for (const part of parts) {
    if (part.content?.$case !== "data") continue;
    const value: unknown = part.content.value;
    if (isJson(value)) return value;
  }
  return {};
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(values: Json, key: string): string {
  const value = values[key];
  return typeof value === "string" ? value : "";
}

function optional(values: Json, key: string): string | null {
  const value = values[key];
  return typeof value === "string" ? value : null;
}
