// The conversation in view, and those that were in view before, so that going back is immediate.

import { signal } from "@preact/signals";

import { getConversation, type ConversationRow, type Requests } from "../api";
import { ConversationState } from "./conversation";
import { RequestError } from "./http";
import type { Environment } from "./turn";

const MAX_OPEN = 8;
const NOT_FOUND = 404;

export class OpenConversations {
  readonly current = signal<ConversationState | null>(null);
  private readonly known = new Map<string, ConversationState>();
  /** When each conversation was changed last, as the list said when it was loaded. */
  private readonly changed = new Map<string, string>();
  private readonly firstLoads = new WeakMap<ConversationState, Promise<void>>();

  /** `onChange` is called after a run has begun, has ended or asks. */
  constructor(
    private readonly http: Requests,
    private readonly environment: Environment,
    private readonly onChange: (conversation: ConversationState, isRunning: boolean) => void,
  ) {}

  /** A conversation that begins in this page. */
  create(id: string): ConversationState {
    const conversation = this.add(id);
    conversation.loading.value = "loaded";
    return conversation;
  }

  show(id: string | null): void {
    const before = this.current.peek();
    if ((before?.id ?? null) === id) return;
    if (before !== null) this.leave(before);
    const after = id === null ? null : (this.known.get(id) ?? this.add(id));
    this.current.value = after;
    after?.enter();
    if (after !== null && !isNew(after)) void this.load();
  }

  /** Load the current conversation, also again. All who want it first share one request. */
  async load(): Promise<void> {
    const conversation = this.current.peek();
    if (conversation === null || conversation.turns.peek().some((turn) => turn.state.peek() === "sending")) return;
    if (conversation.loading.peek() !== "loading") return this.read(conversation);
    const first = this.firstLoads.get(conversation) ?? this.read(conversation);
    this.firstLoads.set(conversation, first);
    await first;
  }

  private async read(conversation: ConversationState): Promise<void> {
    const requestedAt = performance.now();
    try {
      const stored = await getConversation(this.http, conversation.id);
      conversation.merge(stored);
      conversation.updateSharing(stored, requestedAt);
    } catch (error) {
      if (conversation.loading.peek() === "loaded") return;
      conversation.loading.value = error instanceof RequestError && error.status === NOT_FOUND ? "missing" : "failed";
    }
  }

  /** Load the current conversation again if another client changed it: the page follows only its own runs. */
  async compare(rows: readonly ConversationRow[], requestedAt: number): Promise<void> {
    const conversation = this.current.peek();
    const row = rows.find((one) => one.id === conversation?.id);
    if (conversation === null || row === undefined) return;
    conversation.updateSharing(row, requestedAt);
    const before = this.changed.get(row.id);
    this.changed.set(row.id, row.changed);
    const hasOther = row.tasks > conversation.turns.peek().filter((turn) => turn.taskId.peek() !== null).length;
    const isChanged = before !== undefined && before !== row.changed && !conversation.isFollowed;
    if (hasOther || isChanged || conversation.loading.peek() === "failed") await this.load();
  }

  wake(mayBeDead: boolean): void {
    this.current.peek()?.wake(mayBeDead);
  }

  /** Stop following; the runs continue. */
  pause(): void {
    this.current.peek()?.leave();
  }

  resume(): void {
    this.current.peek()?.enter();
  }

  renamed(id: string, name: string): void {
    const conversation = this.known.get(id);
    if (conversation) conversation.name.value = name;
  }

  shared(id: string, groups: string[]): void {
    this.known.get(id)?.shared(groups);
  }

  clear(): void {
    for (const id of [...this.known.keys()]) this.forget(id);
    this.changed.clear();
    this.current.value = null;
  }

  forget(id: string): void {
    this.known.get(id)?.leave();
    this.known.delete(id);
  }

  private leave(conversation: ConversationState): void {
    conversation.leave();
    if (conversation.turns.peek().some((turn) => !turn.isAtRest)) this.onChange(conversation, true);
  }

  private add(id: string): ConversationState {
    const conversation = new ConversationState(id, this.environment, this.onChange);
    this.known.set(id, conversation);
    for (const [old, one] of this.known) {
      if (this.known.size <= MAX_OPEN) break;
      if (one !== this.current.peek() && !one.isFollowed) this.known.delete(old);
    }
    return conversation;
  }
}

/** Whether the supervisor does not know the conversation yet. */
function isNew(conversation: ConversationState): boolean {
  return conversation.loading.peek() === "loaded" && conversation.turns.peek().length === 0;
}
