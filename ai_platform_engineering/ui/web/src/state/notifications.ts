// Notices about runs that are not in view, and about actions that failed.

import { signal } from "@preact/signals";

import type { ConversationRow, TaskState } from "../api";
import { isAtRest } from "../decoding";
import type { Notice } from "../store";
import { TEXTS } from "../texts";
import { randomId } from "./ids";

const MAX_NOTICES = 4;

export class Notifications {
  readonly notices = signal<readonly Notice[]>([]);
  /** The conversations with a run of interest, and since when (`performance.now()`). */
  private readonly awaited = new Map<string, number>();

  /** `isInView`: whether the person sees the conversation. `onReport` is called for each end of a run. */
  constructor(
    private readonly isInView: (conversation: string) => boolean,
    private readonly onReport: (notice: Notice) => void,
  ) {}

  /** Report the end of the run that this conversation works on. */
  await(conversation: string): void {
    this.awaited.set(conversation, performance.now());
  }

  /** Report the ends of awaited runs. `rows` were requested at the time `requestedAt`. */
  check(rows: readonly ConversationRow[], requestedAt: number): void {
    for (const row of rows) {
      const since = this.awaited.get(row.id);
      if (since === undefined || requestedAt < since || !isAtRest(row.state)) continue;
      this.awaited.delete(row.id);
      const kind = kindOf(row.state);
      if (kind === null || this.isInView(row.id)) continue;
      const notice = { id: randomId(), conversation: row.id, kind, text: row.name ?? row.question };
      this.add(notice);
      this.onReport(notice);
    }
  }

  problem(conversation: string, sentence: string): void {
    this.add({ id: randomId(), conversation, kind: "problem", text: sentence });
  }

  dismiss(notice: Notice): void {
    this.notices.value = this.notices.value.filter((one) => one.id !== notice.id);
  }

  clear(): void {
    this.awaited.clear();
    this.notices.value = [];
  }

  private add(notice: Notice): void {
    const others = this.notices.value.filter(
      (one) => one.conversation !== notice.conversation || one.kind === "problem",
    );
    this.notices.value = [...others, notice].slice(-MAX_NOTICES);
  }
}

/** null: no news for the person, who stopped the run. */
function kindOf(state: TaskState): Notice["kind"] | null {
  switch (state) {
    case "completed":
      return "answered";
    case "input-required":
    case "auth-required":
      return "asks";
    case "canceled":
      return null;
    default:
      return "failed";
  }
}

export function mayShowOutside(): boolean {
  return "Notification" in window && Notification.permission === "granted";
}

/** Shows a notice outside of a hidden page, if the person has allowed that. The page never asks for the permission. */
export function showOutside(notice: Notice, open: () => void): void {
  if (!document.hidden || !mayShowOutside()) return;
  const shown = new Notification(TEXTS.notices[notice.kind], { body: notice.text, tag: notice.conversation });
  shown.onclick = () => {
    window.focus();
    open();
    shown.close();
  };
}
