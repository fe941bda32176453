// A supervisor for tests: its task has a log of updates, and its connections break where the test says.

import type { StreamResponse } from "@a2a-js/sdk";

import type { Outgoing, Supervisor } from "../src/state/a2a";
import { task, TASK } from "./updates";

/** The updates of one connection: how many it sends before it breaks or ends; a rejection instead of them. */
export type Connection = { sends: number; breaks?: boolean } | { error: Error };

export class FakeSupervisor implements Supervisor {
  readonly sent: Outgoing[] = [];
  readonly subscriptions: number[] = [];
  readonly canceled: string[] = [];
  /** The updates of the task so far; the first has the number 1. */
  log: StreamResponse[] = [];
  /** The number of updates before each accepted message. */
  private readonly accepted = new Map<string, number>();
  private readonly connections: Connection[];
  private position = 0;

  constructor(...connections: Connection[]) {
    this.connections = connections;
  }

  /** What the next connections do, in addition. */
  then(...connections: Connection[]): void {
    this.connections.push(...connections);
  }

  async *send(message: Outgoing): AsyncIterable<StreamResponse> {
    this.sent.push(message);
    const connection = this.next();
    if (!this.accepted.has(message.messageId)) this.accepted.set(message.messageId, this.position);
    yield* this.stream(connection, this.accepted.get(message.messageId) ?? 0);
  }

  async *subscribe(_taskId: string, lastSeq: number): AsyncIterable<StreamResponse> {
    this.subscriptions.push(lastSeq);
    yield* this.stream(this.next(), lastSeq);
  }

  async cancel(taskId: string): Promise<void> {
    this.canceled.push(taskId);
  }

  private async *stream(connection: Connection, after: number): AsyncIterable<StreamResponse> {
    if ("error" in connection) throw connection.error;
    yield task(after === 0 ? "submitted" : "working", TASK);
    for (const update of this.log.slice(after, after + connection.sends)) {
      await Promise.resolve();
      yield update;
    }
    this.position = Math.max(this.position, after + connection.sends);
    if (connection.breaks) throw new TypeError("network error");
  }

  private next(): Connection {
    const connection = this.connections.shift();
    if (connection === undefined) throw new Error("the test expects no more connections");
    return connection;
  }
}
