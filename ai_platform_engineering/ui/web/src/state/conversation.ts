// A conversation in the page: its turns, merged from the supervisor's stored tasks and from questions asked here.

import { signal } from "@preact/signals";

import type { StoredConversation, StoredTask } from "../api";
import type { Conversation } from "../store";
import { randomId } from "./ids";
import { TurnState, type Environment } from "./turn";

export class ConversationState implements Conversation {
  readonly name = signal<string | null>(null);
  readonly turns = signal<readonly TurnState[]>([]);
  /** Called after a run of this conversation has ended or asks. */
  onRest: (turn: TurnState) => void = () => {};

  constructor(
    readonly id: string,
    private readonly environment: Environment,
  ) {}

  /** Ask a question. Resolves when its run is at rest. */
  async ask(question: string, metadata?: Record<string, unknown>): Promise<void> {
    const turn = new TurnState(this.environment, this.id, { question, messageId: randomId(), askedAt: Date.now() });
    this.watch(turn);
    turn.onAccepted = (taskId) => this.joinForm(turn, taskId);
    this.turns.value = [...this.turns.value, turn];
    await turn.send(metadata);
  }

  /** Add what is stored, and follow the unfinished tasks. */
  merge(stored: StoredConversation): void {
    this.name.value = stored.name;
    const known = this.turns.value;
    const turns = stored.tasks.map((task) => {
      const turn = known.find((one) => isOf(one, task));
      turn?.update(task);
      return turn ?? this.watch(TurnState.stored(this.environment, this.id, task));
    });
    this.turns.value = [...turns, ...known.filter((turn) => !turns.includes(turn) && turn.taskId.value === null)];
    this.follow();
  }

  /** Follow the unfinished tasks. */
  follow(): void {
    for (const turn of this.turns.value) {
      if (!turn.isAtRest) void turn.resume();
    }
  }

  wake(mayBeDead: boolean): void {
    for (const turn of this.turns.value) turn.wake(mayBeDead);
  }

  /** Stop following. Questions that are being sent are sent anyway. */
  leave(): void {
    for (const turn of this.turns.value) {
      if (turn.taskId.value !== null) turn.close();
    }
  }

  private watch(turn: TurnState): TurnState {
    turn.onRest = () => this.onRest(turn);
    return turn;
  }

  /** While a form is open, the supervisor takes a message as a reply to it: then it begins no turn of its own. */
  private joinForm(turn: TurnState, taskId: string): void {
    const asking = this.turns.value.find((one) => one !== turn && one.taskId.value === taskId);
    if (asking === undefined) return;
    turn.close();
    this.turns.value = this.turns.value.filter((one) => one !== turn);
    void asking.resume();
  }
}

function isOf(turn: TurnState, task: StoredTask): boolean {
  return turn.taskId.value === task.id || turn.messageId === task.message_id;
}
