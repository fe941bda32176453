// Feedback on an answer: `POST /feedback`, and what this browser has sent.

import type { Store } from "../store";

export type Rating = "up" | "down";

export interface Submission {
  taskId: string;
  messageId: string;
  rating: Rating;
  reason: string;
}

const KEY = "feedback";
const MAX_REMEMBERED = 500;

export async function sendFeedback(store: Store, sent: Submission): Promise<void> {
  await store.request("POST", "feedback", {
    trace_id: await traceOf(store, sent.taskId),
    task_id: sent.taskId,
    message_id: sent.messageId,
    rating: sent.rating,
    reason: sent.reason,
    surface: "web",
  });
  remember(sent.taskId, sent.rating);
}

/** The rating that was sent from this browser. */
export function rememberedRating(taskId: string): Rating | null {
  return remembered().find(([id]) => id === taskId)?.[1] ?? null;
}

interface TaskResponse {
  result?: { metadata?: { trace_id?: string } };
  error?: { message: string };
}

/** Feedback belongs to a trace. Its id is in the metadata of the A2A task. */
async function traceOf(store: Store, taskId: string): Promise<string> {
  const request = { jsonrpc: "2.0", id: 1, method: "tasks/get", params: { id: taskId, historyLength: 0 } };
  const { result, error } = await store.request<TaskResponse>("POST", "./", request);
  if (error) throw new Error(error.message);
  return result?.metadata?.trace_id ?? taskId;
}

function remember(taskId: string, rating: Rating): void {
  const others = remembered().filter(([id]) => id !== taskId);
  try {
    localStorage.setItem(KEY, JSON.stringify([[taskId, rating], ...others].slice(0, MAX_REMEMBERED)));
  } catch {
    // The browser stores nothing; the rating is shown until the page is closed.
  }
}

/** Pairs of a task and its rating, the newest first. */
function remembered(): [string, Rating][] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(stored) ? stored.filter(isPair) : [];
  } catch {
    return [];
  }
}

function isPair(stored: unknown): stored is [string, Rating] {
  return Array.isArray(stored) && typeof stored[0] === "string" && (stored[1] === "up" || stored[1] === "down");
}
