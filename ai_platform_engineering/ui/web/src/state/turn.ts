// A question and its run in the page: the signals that components read, fed by a follower.

import { signal } from "@preact/signals";

import type { Decision, StoredTask, TaskState } from "../api";
import { Decoder, isAtRest, type NumberedEvent } from "../decoding";
import type { Form, RecordedLine, RunEvent } from "../events";
import { fold, resumed } from "../reducer";
import type { FormAnswer, Turn } from "../store";
import { TEXTS } from "../texts";
import { EMPTY_RUN, type RunView } from "../view";
import type { Outgoing, Supervisor } from "./a2a";
import { complaintOf, decisionOf, resumeData } from "./answers";
import { RunFollower, type Connection, type Listener } from "./follower";
import type { Frames } from "./frames";
import { problemOf } from "./http";
import { randomId } from "./ids";

export interface Environment {
  supervisor: Supervisor;
  frames: Frames;
  /** Who answers forms here, if known. */
  subject: () => string | null;
}

/** The callbacks of the conversation that a turn is part of. */
export interface TurnEvents {
  /** The supervisor has accepted the question as this task, or as a reply to the form of this task. */
  accepted(turn: TurnState, taskId: string): void;
  /** The run has ended or asks. */
  rested(turn: TurnState): void;
}

interface PendingAnswer {
  formId: string;
  /** Called with the reason if the answer was not accepted. */
  settle: (problem: string | null) => void;
}

export class TurnState implements Turn, Listener {
  readonly key: string;
  readonly question: string;
  readonly askedAt: number;
  readonly taskId = signal<string | null>(null);
  readonly state = signal<TaskState | "sending" | "not-sent">("sending");
  readonly run = signal<RunView>(EMPTY_RUN);
  readonly decisions = signal<readonly Decision[]>([]);
  readonly connection = signal<Connection>("idle");
  readonly problem = signal<string | null>(null);
  readonly events: RecordedLine[] = [];
  private readonly decoder: Decoder;
  private readonly follower: RunFollower;
  private following: Promise<void> = Promise.resolve();
  private answers: Promise<unknown> = Promise.resolve();
  private pendingAnswer: PendingAnswer | null = null;
  private stopsWhenAccepted = false;

  constructor(
    private readonly environment: Environment,
    private readonly parent: TurnEvents,
    /** The question. */
    readonly message: Outgoing,
    askedAt: number,
    stored: StoredTask | null = null,
  ) {
    this.key = message.messageId;
    this.question = message.text ?? "";
    this.askedAt = askedAt;
    this.decoder = new Decoder(stored?.last_seq ?? 0, stored?.state ?? null);
    this.follower = new RunFollower(environment.supervisor, this.decoder, this);
    if (stored !== null) {
      this.taskId.value = stored.id;
      this.state.value = stored.state;
      this.decisions.value = stored.decisions;
      this.events = [...stored.events];
      this.run.value = fold(stored.events);
    }
  }

  static stored(environment: Environment, parent: TurnEvents, contextId: string, task: StoredTask): TurnState {
    const message = { messageId: task.message_id || task.id, contextId, text: task.question };
    return new TurnState(environment, parent, message, Date.parse(task.created), task);
  }

  get isAtRest(): boolean {
    const state = this.state.value;
    return state === "not-sent" || (state !== "sending" && isAtRest(state));
  }

  get isFollowed(): boolean {
    return this.follower.isActive;
  }

  /** Send the question and follow its run until it is at rest. */
  async send(): Promise<void> {
    this.state.value = "sending";
    await this.untilRest(this.follower.send(this.message));
  }

  /** Follow the task until it is at rest. */
  async resume(): Promise<void> {
    if (!this.isFollowed && this.taskId.value !== null) await this.untilRest(this.follower.follow(this.taskId.value));
  }

  /** Follow the run after a message that the supervisor took as a reply to this turn's form. */
  async replied(message: Outgoing): Promise<void> {
    await this.untilRest(this.follower.send(message));
  }

  async stop(): Promise<void> {
    const taskId = this.taskId.value;
    if (taskId === null) {
      this.stopsWhenAccepted = true;
      return;
    }
    try {
      await this.environment.supervisor.cancel(taskId);
      void this.resume();
    } catch (error) {
      // A run may end just before it is stopped.
      this.environment.frames.flush();
      if (!this.isAtRest) this.problem.value = problemOf(error);
    }
  }

  /** Answer a form. One answer at a time: the run takes the next one when it waits again. */
  answer(form: Form, answer: FormAnswer): Promise<string | null> {
    const answered = this.answers.then(() => this.sendAnswer(form, answer));
    this.answers = answered;
    return answered;
  }

  wake(mayBeDead: boolean): void {
    this.follower.wake(mayBeDead);
  }

  /** Stop following; the run continues. */
  close(): void {
    this.follower.close();
    this.connection.value = "idle";
  }

  /** Add what happened while the page did not follow. */
  update(stored: StoredTask): void {
    if (this.taskId.value === null) this.taskId.value = stored.id;
    if (stored.decisions.length >= this.decisions.value.length) this.decisions.value = stored.decisions;
    if (this.isFollowed || stored.last_seq <= this.decoder.lastSeq) return;
    const later = stored.events.filter((line) => (line.seq ?? 0) > this.decoder.lastSeq);
    this.events.push(...later);
    this.run.value = fold(later, this.run.value);
    this.decoder.lastSeq = stored.last_seq;
    this.decoder.state = stored.state;
    this.state.value = stored.state;
  }

  accepted(taskId: string): void {
    this.environment.frames.add(() => (this.taskId.value = taskId));
    this.parent.accepted(this, taskId);
    if (!this.stopsWhenAccepted) return;
    this.stopsWhenAccepted = false;
    this.environment.frames.add(() => void this.stop());
  }

  received(events: readonly NumberedEvent[], state: TaskState | null): void {
    const at = Math.max((Date.now() - this.askedAt) / 1000, this.events.at(-1)?.at ?? 0);
    const lines = events.map(({ seq, event }) => ({ ...event, seq, at }));
    this.events.push(...lines);
    const answered = this.settleAnswer(events[0]?.event);
    this.environment.frames.add(() => this.apply(lines, state, answered));
  }

  connected(connection: Connection): void {
    if (connection !== this.connection.value) {
      this.environment.frames.add(() => (this.connection.value = this.isFollowed ? connection : "idle"));
    }
  }

  rejected(sentence: string): void {
    this.pendingAnswer?.settle(sentence);
    this.environment.frames.add(() => {
      this.problem.value = sentence;
      if (this.state.value === "sending") this.state.value = "not-sent";
    });
  }

  private apply(lines: readonly RecordedLine[], state: TaskState | null, answered: string | null): void {
    const before = this.run.value;
    this.run.value = fold(lines, answered === null ? before : resumed(before, answered));
    this.problem.value = null;
    if (state !== null) this.state.value = state;
  }

  /** The id of the form that was answered, if `event` is the first one of the run that continues. */
  private settleAnswer(event: RunEvent | undefined): string | null {
    const answer = this.pendingAnswer;
    if (answer === null || event === undefined) return null;
    this.pendingAnswer = null;
    if (event.event !== "input_required") {
      answer.settle(null);
      return answer.formId;
    }
    const again = event.forms.find((form) => form.form_id === answer.formId);
    answer.settle(again === undefined ? null : complaintOf(again));
    return null;
  }

  private async untilRest(following: Promise<void>): Promise<void> {
    this.problem.value = null;
    this.following = following;
    await following;
    this.environment.frames.add(() => {
      if (this.isAtRest && !this.isFollowed) this.parent.rested(this);
    });
  }

  private async sendAnswer(form: Form, answer: FormAnswer): Promise<string | null> {
    await this.following;
    this.environment.frames.flush();
    const taskId = this.taskId.value;
    const isOpen = this.run.value.forms.some((one) => one.form_id === form.form_id);
    if (taskId === null || !isOpen) return TEXTS.chat.formClosed;
    const { contextId } = this.message;
    const data = resumeData(form.form_id, answer);
    const problem = await new Promise<string | null>((settle) => {
      this.pendingAnswer = { formId: form.form_id, settle };
      const sent = this.follower.send({ messageId: randomId(), contextId, taskId, data });
      void this.untilRest(sent).finally(() => settle(null));
    });
    if (problem !== null) return problem;
    const decision = decisionOf(form.form_id, answer, new Date(), this.environment.subject());
    this.decisions.value = [...this.decisions.value, decision];
    return null;
  }
}
