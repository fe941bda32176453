// Follows one task: sends a message or subscribes, and reconnects until the task is at rest. No update is lost or
// repeated.

import type { StreamResponse } from "@a2a-js/sdk";

import type { TaskState } from "../api";
import { GapError, isAtRest, taskIdOf, type Decoder, type NumberedEvent } from "../decoding";
import type { Outgoing, Supervisor } from "./a2a";
import { problemOf, RequestError } from "./http";

const FIRST_PAUSE = 250;
const MAX_PAUSE = 5000;
/** After this many milliseconds without an update, the connection may be dead without the browser noticing. */
const MAX_SILENCE = 45_000;
const CLIENT_ERROR = 400;
const SERVER_ERROR = 500;
const TOO_MANY_REQUESTS = 429;
const INTERNAL_ERROR = -32603;

export type Connection = "idle" | "live" | "lost";

/** What happens to a followed task. */
export interface Listener {
  /** The supervisor has accepted the message as this task, or as an answer to it. */
  accepted(taskId: string): void;
  received(events: readonly NumberedEvent[], state: TaskState | null): void;
  connected(connection: Connection): void;
  /** The supervisor rejected the message or the subscription. */
  rejected(sentence: string): void;
}

export class RunFollower {
  taskId: string | null;
  private aborter: AbortController | null = null;
  private wakeUp: (() => void) | null = null;
  private isClosed = false;
  private failures = 0;
  private heardAt = 0;
  private running: Promise<void> | null = null;

  constructor(
    private readonly supervisor: Supervisor,
    private readonly decoder: Decoder,
    private readonly listener: Listener,
    taskId: string | null = null,
    private readonly firstPause = FIRST_PAUSE,
  ) {
    this.taskId = taskId;
  }

  get isActive(): boolean {
    return this.running !== null;
  }

  /** Follow the task until it is at rest; with a message, send it first. One call at a time. */
  async follow(message: Outgoing | null = null): Promise<void> {
    this.isClosed = false;
    this.running = this.run(message);
    const watch = setInterval(() => this.checkSilence(), MAX_SILENCE / 3);
    try {
      await this.running;
    } finally {
      clearInterval(watch);
      this.running = null;
    }
  }

  /** Try again at once if the connection is lost; replace it if it may be dead. */
  wake(mayBeDead = false): void {
    this.wakeUp?.();
    if (mayBeDead) this.aborter?.abort();
  }

  close(): void {
    this.isClosed = true;
    this.aborter?.abort();
    this.wakeUp?.();
  }

  private async run(message: Outgoing | null): Promise<void> {
    let unsent = message;
    this.failures = 0;
    while (!this.isClosed) {
      const aborter = new AbortController();
      this.aborter = aborter;
      this.heardAt = Date.now();
      try {
        for await (const response of this.open(unsent, aborter.signal)) {
          if (this.isClosed) return;
          this.heard();
          const isReply = unsent !== null;
          unsent = null;
          this.read(response, isReply);
        }
        if (unsent === null && this.decoder.state !== null && isAtRest(this.decoder.state)) break;
      } catch (error) {
        if (this.isClosed) return;
        if (error instanceof GapError) continue;
        if (!isTemporary(error, unsent === null)) {
          this.listener.connected("idle");
          this.listener.rejected(problemOf(error));
          return;
        }
      }
      // A connection that was replaced on purpose is not lost yet.
      if (aborter.signal.aborted && this.failures === 0) continue;
      this.listener.connected("lost");
      await this.pause();
    }
    this.listener.connected("idle");
  }

  private open(unsent: Outgoing | null, signal: AbortSignal): AsyncIterable<StreamResponse> {
    if (unsent !== null) return this.supervisor.send(unsent, signal);
    if (this.taskId === null) throw new Error("a task without an id cannot be followed");
    return this.supervisor.subscribe(this.taskId, this.decoder.lastSeq, signal);
  }

  private read(response: StreamResponse, isReply: boolean): void {
    const taskId = taskIdOf(response);
    if (isReply && taskId !== null) {
      this.taskId = taskId;
      this.listener.accepted(taskId);
      if (response.payload?.$case === "task" && this.decoder.state !== null) {
        // The snapshot is older than the answer, which lets the task continue.
        this.decoder.state = "working";
        return;
      }
    }
    this.listener.received(this.decoder.feed(response), this.decoder.state);
  }

  private heard(): void {
    this.heardAt = Date.now();
    this.failures = 0;
    this.listener.connected("live");
  }

  private checkSilence(): void {
    if (Date.now() - this.heardAt >= MAX_SILENCE) this.aborter?.abort();
  }

  /** Twice as long after each failure, and of a random length, so that many pages do not come back at once. */
  private async pause(): Promise<void> {
    const longest = Math.min(MAX_PAUSE, this.firstPause * 2 ** this.failures);
    this.failures += 1;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, longest * (0.5 + Math.random() / 2));
      this.wakeUp = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.wakeUp = null;
  }
}

/** Whether another attempt may succeed. `isAccepted`: the attempt only reads the events of a task that exists. */
function isTemporary(error: unknown, isAccepted: boolean): boolean {
  if (error instanceof RequestError) {
    const { status } = error;
    return status < CLIENT_ERROR || status >= SERVER_ERROR || status === TOO_MANY_REQUESTS || (status === 401 && isAccepted);
  }
  const rejection = rejectionIn(error);
  if (rejection === null) return true;
  return isServerStopping(rejection.data) || (isAccepted && rejection.envelopeCode === INTERNAL_ERROR);
}

interface Rejection {
  envelopeCode: number;
  data?: unknown;
}

/** The JSON-RPC error in `error`, which the SDK wraps if it came in a stream. */
function rejectionIn(error: unknown): Rejection | null {
  for (let one = error; one instanceof Error; one = one.cause) {
    if ("envelopeCode" in one && typeof one.envelopeCode === "number") return one as Error & Rejection;
  }
  return null;
}

/** A message that came while the supervisor was stopping is accepted after its restart. */
function isServerStopping(data: unknown): boolean {
  return JSON.stringify(data ?? null).includes('"server":"stopping"');
}
