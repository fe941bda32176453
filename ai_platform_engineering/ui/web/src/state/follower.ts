// Follows one task: sends a message or subscribes, and reconnects until the task is at rest. No update is lost or
// repeated.

import type { StreamResponse } from "@a2a-js/sdk";

import type { TaskState } from "../api";
import { GapError, isAtRest, taskIdOf, type Decoder, type NumberedEvent } from "../decoding";
import type { Outgoing, Supervisor } from "./a2a";
import { isTemporary, problemOf } from "./http";

const FIRST_PAUSE = 250;
const MAX_PAUSE = 5000;
/** After this many milliseconds without an update, the connection may be dead without the browser noticing. */
const MAX_SILENCE = 45_000;
/** After a reconnect many updates arrive at once: so many milliseconds of work are one task of the page. */
const MAX_SLICE = 10;

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
  private following: Following | null = null;

  constructor(
    private readonly supervisor: Supervisor,
    private readonly decoder: Decoder,
    private readonly listener: Listener,
    private readonly firstPause = FIRST_PAUSE,
  ) {}

  get isActive(): boolean {
    return this.following !== null;
  }

  /** Send a message and follow its task until it is at rest. */
  send(message: Outgoing): Promise<void> {
    return this.run(message, null);
  }

  /** Follow a task until it is at rest. */
  follow(taskId: string): Promise<void> {
    return this.run(null, taskId);
  }

  /** Try again at once if the connection is lost; replace it if it may be dead. */
  wake(mayBeDead: boolean): void {
    this.following?.wake(mayBeDead);
  }

  /** Stop following. The run itself continues. */
  close(): void {
    this.following?.close();
    this.following = null;
  }

  private async run(message: Outgoing | null, taskId: string | null): Promise<void> {
    this.close();
    const following = new Following(this.supervisor, this.decoder, this.listener, this.firstPause, taskId);
    this.following = following;
    try {
      await following.run(message);
    } finally {
      if (this.following === following) this.following = null;
    }
  }
}

/** The connections to one task, until it is at rest. */
class Following {
  private isClosed = false;
  private aborter = new AbortController();
  private endPause: (() => void) | null = null;
  private failures = 0;
  private heardAt = 0;

  constructor(
    private readonly supervisor: Supervisor,
    private readonly decoder: Decoder,
    private readonly listener: Listener,
    private readonly firstPause: number,
    private taskId: string | null,
  ) {}

  async run(message: Outgoing | null): Promise<void> {
    const watch = setInterval(() => this.checkSilence(), MAX_SILENCE / 3);
    try {
      await this.connectUntilRest(message);
    } finally {
      clearInterval(watch);
    }
  }

  wake(mayBeDead: boolean): void {
    this.endPause?.();
    if (mayBeDead) this.aborter.abort();
  }

  close(): void {
    this.isClosed = true;
    this.aborter.abort();
    this.endPause?.();
  }

  private async connectUntilRest(message: Outgoing | null): Promise<void> {
    let unsent = message;
    while (!this.isClosed) {
      const aborter = new AbortController();
      this.aborter = aborter;
      this.heardAt = Date.now();
      try {
        let sliceBegan = performance.now();
        for await (const response of this.open(unsent, aborter.signal)) {
          if (this.isClosed) return;
          const isReply = unsent !== null;
          unsent = null;
          this.read(response, isReply);
          if (performance.now() - sliceBegan > MAX_SLICE) {
            await nextTask();
            sliceBegan = performance.now();
          }
        }
        if (unsent === null && this.decoder.state !== null && isAtRest(this.decoder.state)) break;
      } catch (error) {
        if (this.isClosed) return;
        if (error instanceof GapError) continue;
        if (!isTemporary(error, unsent === null)) {
          this.listener.rejected(problemOf(error));
          break;
        }
      }
      // A connection that is replaced on purpose is not lost.
      if (aborter.signal.aborted) continue;
      this.listener.connected("lost");
      await this.pause();
    }
    if (!this.isClosed) this.listener.connected("idle");
  }

  private open(unsent: Outgoing | null, signal: AbortSignal): AsyncIterable<StreamResponse> {
    if (unsent !== null) return this.supervisor.send(unsent, signal);
    if (this.taskId === null) throw new Error("a task without an id cannot be followed");
    return this.supervisor.subscribe(this.taskId, this.decoder.lastSeq, signal);
  }

  private read(response: StreamResponse, isReply: boolean): void {
    this.heardAt = Date.now();
    this.listener.connected("live");
    const taskId = taskIdOf(response);
    if (isReply && taskId !== null) {
      this.failures = 0;
      this.taskId = taskId;
      this.listener.accepted(taskId);
      if (this.isClosed) return;
      if (response.payload?.$case === "task" && this.decoder.state !== null) {
        // The snapshot is older than the answer, which lets the task continue.
        this.decoder.state = "working";
        return;
      }
    }
    const before = this.decoder.lastSeq;
    const events = this.decoder.feed(response);
    // A server that is stopping still responds: only a new update is a success.
    if (this.decoder.lastSeq > before) this.failures = 0;
    this.listener.received(events, this.decoder.state);
  }

  private checkSilence(): void {
    if (Date.now() - this.heardAt >= MAX_SILENCE) this.aborter.abort();
  }

  /** Twice as long after each failure, and of a random length, so that many pages do not come back at once. */
  private async pause(): Promise<void> {
    const longest = Math.min(MAX_PAUSE, this.firstPause * 2 ** this.failures);
    this.failures += 1;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, longest * (0.5 + Math.random() / 2));
      this.endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.endPause = null;
  }
}

/** Lets the page draw and react to people. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
