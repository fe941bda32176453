// Builds the supervisor's A2A updates for tests, as the SDK's client gives them.

import type { Part, StreamResponse } from "@a2a-js/sdk";

type Metadata = Record<string, unknown>;

const STATES = {
  submitted: 1,
  working: 2,
  completed: 3,
  failed: 4,
  canceled: 5,
  "input-required": 6,
} as const;

export const TASK = "task-1";

export function task(state: keyof typeof STATES, id = TASK): StreamResponse {
  return {
    payload: {
      $case: "task",
      value: {
        id,
        contextId: "context-1",
        status: { state: STATES[state], message: undefined, timestamp: undefined },
        artifacts: [],
        history: [],
        metadata: undefined,
      },
    },
  };
}

export function artifact(seq: number, event: string, metadata: Metadata, ...parts: Part[]): StreamResponse {
  return {
    payload: {
      $case: "artifactUpdate",
      value: {
        taskId: TASK,
        contextId: "context-1",
        artifact: {
          artifactId: `${TASK}:${seq}`,
          name: event,
          description: "",
          parts,
          metadata: { seq, event, source_agent: "supervisor", trace_id: "trace", ...metadata },
          extensions: [],
        },
        append: false,
        lastChunk: false,
        metadata: undefined,
      },
    },
  };
}

export function status(
  seq: number | null,
  state: keyof typeof STATES,
  metadata: Metadata = {},
  sentence = "",
): StreamResponse {
  const message = {
    messageId: `${TASK}:status`,
    contextId: "context-1",
    taskId: TASK,
    role: 2,
    parts: [textPart(sentence)],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
  const ours = seq === null ? undefined : { seq, event: state, source_agent: "supervisor", ...metadata };
  return {
    payload: {
      $case: "statusUpdate",
      value: {
        taskId: TASK,
        contextId: "context-1",
        status: { state: STATES[state], message: sentence ? message : undefined, timestamp: undefined },
        metadata: ours,
      },
    },
  };
}

export function delta(seq: number, text: string, messageId = "m1"): StreamResponse {
  return artifact(seq, "text_delta", { message_id: messageId }, textPart(text));
}

export function final(seq: number, text: string, messageId = "m1"): StreamResponse {
  return artifact(seq, "final_result", { answer_message_id: messageId }, textPart(text));
}

export function textPart(value: string): Part {
  return part({ $case: "text", value });
}

export function dataPart(value: unknown): Part {
  return part({ $case: "data", value });
}

function part(content: NonNullable<Part["content"]>): Part {
  return { content, metadata: undefined, filename: "", mediaType: "" };
}
