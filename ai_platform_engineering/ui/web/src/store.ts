// The state of the page, as signals, and what a person can do. Components read and call this and nothing else.

import type { ReadonlySignal } from "@preact/signals";

import type { About, AgentRow, ConversationRow, Decision, Session, Sharing, TaskState } from "./api";
import type { FieldValue, Form, RecordedLine } from "./events";
import type { RunView } from "./view";

export interface Turn {
  /** Stable in the page, also before the supervisor has given out the id of the task. */
  key: string;
  taskId: ReadonlySignal<string | null>;
  question: string;
  /** Milliseconds since the epoch. */
  askedAt: number;
  state: ReadonlySignal<TaskState | "sending" | "not-sent">;
  run: ReadonlySignal<RunView>;
  decisions: ReadonlySignal<readonly Decision[]>;
  /** `lost`: the page reconnects. */
  connection: ReadonlySignal<"idle" | "live" | "lost">;
  /** Why the message could not be sent, or the last request failed. */
  problem: ReadonlySignal<string | null>;
  /** The events so far, for the developer view. Grows; read `run` to be notified. */
  events: readonly RecordedLine[];
}

export interface Conversation {
  id: string;
  name: ReadonlySignal<string | null>;
  turns: ReadonlySignal<readonly Turn[]>;
  /** null: not known yet. */
  sharing: ReadonlySignal<Sharing | null>;
  /** `missing`: the supervisor has no such conversation. `failed`: it could not be loaded; the page tries again. */
  loading: ReadonlySignal<"loading" | "loaded" | "missing" | "failed">;
}

export type Place =
  | { view: "chat"; conversation: string | null }
  | { view: "agents" | "workflows" | "skills" | "knowledge" | "replay" };

export type FormAnswer =
  | { kind: "values"; values: Record<string, FieldValue> }
  | { kind: "approve"; always: boolean }
  /** `values` are the changed arguments of the call, which are any JSON. */
  | { kind: "edit"; values: Record<string, unknown> }
  | { kind: "reject"; reason: string }
  | { kind: "cancel"; reason?: string };

export interface Notice {
  id: string;
  conversation: string;
  /** `problem`: something that the person did has failed. */
  kind: "answered" | "asks" | "failed" | "problem";
  text: string;
}

export interface Store {
  place: ReadonlySignal<Place>;
  session: ReadonlySignal<Session | null>;
  about: ReadonlySignal<About | null>;
  agents: ReadonlySignal<readonly AgentRow[] | null>;
  conversations: ReadonlySignal<readonly ConversationRow[]>;
  /** Whether there are more conversations than listed. */
  hasMore: ReadonlySignal<boolean>;
  search: ReadonlySignal<string>;
  current: ReadonlySignal<Conversation | null>;
  online: ReadonlySignal<boolean>;
  notices: ReadonlySignal<readonly Notice[]>;

  go(place: Place): void;
  signIn(key: string): Promise<string | null>;
  signOut(): Promise<void>;
  searchFor(text: string): void;
  loadMore(): Promise<void>;
  rename(conversation: string, name: string): Promise<void>;
  remove(conversation: string): Promise<void>;
  /** Share with these groups and no others. Resolves to a sentence if that failed. */
  share(conversation: string, groups: readonly string[]): Promise<string | null>;
  /** Ask in the current conversation, or in a new one. `metadata` goes with the message, e.g. the workflow to start. */
  ask(question: string, metadata?: Record<string, unknown>): Promise<void>;
  retry(turn: Turn): Promise<void>;
  stop(turn: Turn): Promise<void>;
  /** Resolves to a sentence if the answer was not accepted. */
  answer(turn: Turn, form: Form, answer: FormAnswer): Promise<string | null>;
  dismiss(notice: Notice): void;
  loadAgents(): Promise<void>;
  /**
   * A request to a REST resource; `path` is relative to the page. Resolves to the JSON of the response. Rejects with an
   * error whose message is a sentence for people and which has the `status` of the response.
   */
  request<Result>(method: "GET" | "POST", path: string, body?: unknown): Promise<Result>;
}
