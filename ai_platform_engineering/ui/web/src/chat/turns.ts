// What the parts of the chat derive from a turn.

import type { Turn } from "../store";
import type { MessageView, RunView } from "../view";

const RUNNING = new Set(["sending", "submitted", "working"]);

export function isRunning(turn: Turn): boolean {
  return RUNNING.has(turn.state.value);
}

/** The message that is the answer, or that may become it: the last one while no agent works. */
export function answerOf(run: RunView): MessageView | null {
  if (run.answerId !== null) return run.messages.find((message) => message.id === run.answerId) ?? null;
  return null;
}

export function narrationOf(run: RunView): readonly MessageView[] {
  return run.messages.filter((message) => message.id !== run.answerId && message.text.trim() !== "");
}
