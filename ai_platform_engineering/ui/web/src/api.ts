// The supervisor's REST resources that the page uses beside A2A: their JSON, and one function for each request.
// Addresses are relative to the page, so that it works behind a path prefix.

import type { RecordedLine } from "./events";

/** States of A2A tasks, as `tasks list` names them. */
export type TaskState =
  | "submitted"
  | "working"
  | "input-required"
  | "auth-required"
  | "completed"
  | "failed"
  | "canceled"
  | "rejected";

export interface Session {
  /** Whether requests need a sign-in. */
  required: boolean;
  signed_in: boolean;
  subject: string | null;
  /** The person's name at the OpenID Connect provider. */
  name: string | null;
  /** The groups that the person is in. */
  groups: string[];
  /** Sent in the header X-CSRF-Token of every changing request. */
  csrf_token: string | null;
  /** How a browser can sign in; empty: it cannot, or need not. `openid`: at `startOfSignIn`. */
  methods: ("openid" | "key")[];
  /** Not null: the terminal can sign in. */
  terminal: unknown;
}

/** Who may use a conversation, for the person who is signed in. */
export interface Sharing {
  /** null: the conversation began without a sign-in. */
  owner: string | null;
  /** Whether the person is the owner. */
  owned: boolean;
  /** The groups that it is shared with. */
  groups: string[];
  /** Whether the person may share and delete it. */
  may_share: boolean;
}

export interface ConversationRow extends Sharing {
  id: string;
  /** The name that a person gave it. */
  name: string | null;
  /** The first question. */
  question: string;
  state: TaskState;
  tasks: number;
  /** ISO 8601, as all times here. */
  created: string;
  changed: string;
}

export interface ConversationPage {
  conversations: ConversationRow[];
  /** The value of `after` for the next page. */
  next: string | null;
}

/** What a person answered to a form. */
export interface Decision {
  form_id: string;
  at: string;
  /** Who answered, if the supervisor knows. */
  by: string | null;
  kind: "values" | "approve" | "edit" | "reject" | "cancel" | "text";
  /** The values of the fields, or the changed arguments of the call. */
  values: Record<string, unknown>;
  reason: string | null;
  /** Whether the approval holds for the rest of the conversation. */
  always: boolean;
}

export interface StoredTask {
  id: string;
  state: TaskState;
  question: string;
  message_id: string;
  created: string;
  changed: string;
  /** The number of the last event in `events`. */
  last_seq: number;
  /** The events so far, each with `seq` and with `at`, in seconds since `created`. */
  events: RecordedLine[];
  decisions: Decision[];
}

export interface StoredConversation extends Sharing {
  id: string;
  name: string | null;
  /** The oldest first. */
  tasks: StoredTask[];
}

export interface ToolRow {
  name: string;
  description: string;
  read_only: boolean;
  destructive: boolean;
}

export interface AgentRow {
  name: string;
  title: string;
  description: string;
  enabled: boolean;
  /** Where it runs; null if it is not enabled. */
  placement: "in-process" | "remote" | null;
  /** Why it is enabled and runs there, as `doctor` says it. */
  why: string;
  /** Whether it uses the sandbox instead of its real backend. */
  sandbox: boolean;
  /** null: not known yet. */
  reachable: boolean | null;
  /** Why it cannot be reached or has no tools. */
  problem: string | null;
  /** The settings that a real backend still needs. */
  missing: { setting: string; description: string }[];
  examples: string[];
  tools: ToolRow[];
}

export interface About {
  version: string;
  model: { provider: string; name: string; offline: boolean };
  knowledge_base: boolean;
  memories: boolean;
  sandbox: boolean;
  /** The titles of the enabled agents by name. */
  agent_titles: Record<string, string>;
  /** Questions to begin with, from the examples of the enabled agents. */
  suggestions: { agent: string; question: string }[];
  /** Why the supervisor works only in part; null if it works. */
  degraded: string | null;
}

/** Sends a request to an address relative to the page and resolves to the JSON of the response. */
export interface Requests {
  json<Result>(method: string, path: string, body?: unknown): Promise<Result>;
}

export function getSession(http: Requests): Promise<Session> {
  return http.json("GET", "session");
}

export function signIn(http: Requests, key: string): Promise<Session> {
  return http.json("POST", "session", { key });
}

/** Where a sign-in with OpenID Connect begins, which returns to the fragment `place` of the page. */
export function startOfSignIn(place: string): string {
  return `session/start?place=${encodeURIComponent(place)}`;
}

/** Resolves to the page that ends the session at the provider as well, if there is one. */
export function signOut(http: Requests): Promise<{ logout_url: string } | null> {
  return http.json("DELETE", "session");
}

export function getAbout(http: Requests): Promise<About> {
  return http.json("GET", "about");
}

export function getAgents(http: Requests): Promise<{ agents: AgentRow[] }> {
  return http.json("GET", "agents");
}

export function listConversations(
  http: Requests,
  query: { limit: number; search?: string; after?: string },
): Promise<ConversationPage> {
  const parameters = new URLSearchParams({ limit: String(query.limit) });
  if (query.search) parameters.set("search", query.search);
  if (query.after) parameters.set("after", query.after);
  return http.json("GET", `conversations?${parameters}`);
}

export function getConversation(http: Requests, id: string): Promise<StoredConversation> {
  return http.json("GET", conversationPath(id));
}

export function renameConversation(http: Requests, id: string, name: string): Promise<unknown> {
  return http.json("PATCH", conversationPath(id), { name });
}

/** Shares with these groups and no others. */
export function shareConversation(http: Requests, id: string, groups: readonly string[]): Promise<{ groups: string[] }> {
  return http.json("PATCH", conversationPath(id), { groups });
}

/** `force` also deletes a conversation that has unfinished tasks. */
export function deleteConversation(http: Requests, id: string, force: boolean): Promise<unknown> {
  return http.json("DELETE", force ? `${conversationPath(id)}?force=true` : conversationPath(id));
}

function conversationPath(id: string): string {
  return `conversations/${encodeURIComponent(id)}`;
}
