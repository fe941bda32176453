// A conversation in the page: its turns, merged from the supervisor's stored tasks and from questions asked here.

import { signal } from "@preact/signals";

import type { Sharing, StoredConversation, StoredTask } from "../api";
import type { Conversation } from "../store";
import { randomId } from "./ids";
import { TurnState, type Environment, type TurnEvents } from "./turn";

/** Browsers open few connections to one server; the page needs some for other requests. */
const MAX_STREAMS = 2;

export class ConversationState implements Conversation, TurnEvents {
  readonly name = signal<string | null>(null);
  readonly turns = signal<readonly TurnState[]>([]);
  readonly sharing = signal<Sharing | null>(null);
  readonly loading = signal<Conversation["loading"]["value"]>("loading");
  private isInView = true;
  /** When the person shared it last. */
  private sharedAt = 0;

  constructor(
    readonly id: string,
    private readonly environment: Environment,
    /** Called after a run has begun or continues, and after it has ended or asks. */
    private readonly onChange: (conversation: ConversationState, isRunning: boolean) => void,
  ) {}

  get isFollowed(): boolean {
    return this.turns.value.some((turn) => turn.isFollowed);
  }

  /** Ask a question. Resolves when its run is at rest. */
  async ask(question: string, metadata?: Record<string, unknown>): Promise<void> {
    const message = { messageId: randomId(), contextId: this.id, text: question, ...(metadata ? { metadata } : {}) };
    const turn = new TurnState(this.environment, this, message, Date.now());
    this.turns.value = [...this.turns.value, turn];
    await turn.send();
  }

  /** Add what is stored, and follow the unfinished tasks. */
  merge(stored: Omit<StoredConversation, keyof Sharing>): void {
    this.name.value = stored.name;
    const known = this.turns.value;
    const turns = stored.tasks.map((task) => {
      const turn = known.find((one) => isOf(one, task));
      turn?.update(task);
      return turn ?? TurnState.stored(this.environment, this, this.id, task);
    });
    this.turns.value = [...turns, ...known.filter((turn) => !turns.includes(turn))];
    this.loading.value = "loaded";
    this.follow();
  }

  /** Take over what a response says. One to a request from before the last change is outdated. */
  updateSharing({ owner, owned, groups, may_share }: Sharing, requestedAt: number): void {
    if (requestedAt >= this.sharedAt) this.sharing.value = { owner, owned, groups, may_share };
  }

  shared(groups: string[]): void {
    this.sharedAt = performance.now();
    if (this.sharing.value !== null) this.sharing.value = { ...this.sharing.value, groups };
  }

  /** Follow the first unfinished tasks. The others wait for them anyway: a conversation works on one at a time. */
  follow(): void {
    if (!this.isInView) return;
    const unfinished = this.turns.value.filter((turn) => !turn.isAtRest);
    for (const turn of unfinished.slice(0, MAX_STREAMS)) void turn.resume();
    for (const turn of unfinished.slice(MAX_STREAMS)) {
      if (turn.taskId.value !== null) turn.close();
    }
  }

  wake(mayBeDead: boolean): void {
    for (const turn of this.turns.value) turn.wake(mayBeDead);
  }

  enter(): void {
    this.isInView = true;
    this.follow();
  }

  /** Stop following. A question that is being sent is sent anyway. */
  leave(): void {
    this.isInView = false;
    for (const turn of this.turns.value) {
      if (turn.taskId.value !== null) turn.close();
    }
  }

  accepted(turn: TurnState, taskId: string): void {
    const asking = this.turns.value.find((one) => one !== turn && one.taskId.value === taskId);
    if (asking !== undefined) {
      // While a form is open, the supervisor takes a message as a reply to it. The message begins no turn of its own.
      turn.close();
      this.turns.value = this.turns.value.filter((one) => one !== turn);
      void asking.replied(turn.message);
      return;
    }
    this.environment.frames.add(() => {
      if (this.isInView) this.follow();
      else turn.close();
      this.onChange(this, true);
    });
  }

  rested(): void {
    this.follow();
    this.onChange(this, false);
  }
}

function isOf(turn: TurnState, task: StoredTask): boolean {
  return turn.taskId.value === task.id || turn.message.messageId === task.message_id;
}
