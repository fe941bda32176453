// What the page shows of one run. Values only; the fold over events is in reducer.ts.

import type { Ending, Form, StepStatus } from "./events";

/** `waiting`: the run waits for a person. `unknown`: the run ended without the call's end. */
export type CallState = "running" | "waiting" | "completed" | "failed" | "unknown";

/** Times are seconds since the start of the run. */
export interface ToolView {
  kind: "tool";
  callId: string;
  agent: string;
  tool: string;
  /** The skill that the call reads, if it reads one. */
  skill: string | null;
  state: CallState;
  reason: string;
  stepId: string | null;
  startedAt: number;
  endedAt: number | null;
}

export interface AgentView {
  kind: "agent";
  callId: string;
  agent: string;
  state: CallState;
  reason: string;
  stepId: string | null;
  startedAt: number;
  endedAt: number | null;
  tools: readonly ToolView[];
}

export interface StepView {
  id: string;
  title: string;
  status: StepStatus;
  agent: string | null;
}

/** A message of the supervisor: narration, or the answer. */
export interface MessageView {
  id: string;
  text: string;
  ended: boolean;
  /** A crash cut the message off, and a later one replaces it. */
  superseded: boolean;
}

export interface RunView {
  planTitle: string;
  steps: readonly StepView[];
  /** The calls of the supervisor, in order of their start: agents, and tools of its own. */
  calls: readonly (AgentView | ToolView)[];
  messages: readonly MessageView[];
  /** The open forms; empty unless the run waits for a person. */
  forms: readonly Form[];
  /** How the run ended, or the forms that it waits for; null while it runs. */
  ending: Ending | null;
  /** The id of the message that is the answer, once it is known. */
  answerId: string | null;
  /** The time of the last event. */
  elapsed: number;
}

export const EMPTY_RUN: RunView = {
  planTitle: "",
  steps: [],
  calls: [],
  messages: [],
  forms: [],
  ending: null,
  answerId: null,
  elapsed: 0,
};
