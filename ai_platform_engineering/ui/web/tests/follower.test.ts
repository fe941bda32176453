import assert from "node:assert/strict";
import { test } from "node:test";

import type { TaskState } from "../src/api";
import { Decoder, type NumberedEvent } from "../src/decoding";
import { RunFollower, type Listener } from "../src/state/follower";
import { RequestError, UnreachableError } from "../src/state/http";
import { FakeSupervisor, type Connection } from "./fake_supervisor";
import { delta, final, status, TASK } from "./updates";

const QUESTION = { messageId: "q1", contextId: "context-1", text: "hello" };
const LOG = [status(1, "working"), delta(2, "a"), delta(3, "b"), delta(4, "c"), final(5, "abc"), status(6, "completed")];

class Recorder implements Listener {
  readonly numbers: number[] = [];
  readonly acceptances: string[] = [];
  readonly connections: string[] = [];
  readonly rejections: string[] = [];
  state: TaskState | null = null;

  accepted(taskId: string): void {
    this.acceptances.push(taskId);
  }

  received(events: readonly NumberedEvent[], state: TaskState | null): void {
    this.numbers.push(...events.map((one) => one.seq));
    this.state = state;
  }

  connected(connection: string): void {
    if (this.connections.at(-1) !== connection) this.connections.push(connection);
  }

  rejected(sentence: string): void {
    this.rejections.push(sentence);
  }
}

function following(log: FakeSupervisor["log"], ...connections: Connection[]) {
  const supervisor = new FakeSupervisor(...connections);
  supervisor.log = log;
  const recorder = new Recorder();
  const decoder = new Decoder();
  return { supervisor, recorder, decoder, follower: new RunFollower(supervisor, decoder, recorder, 1) };
}

test("a run is followed to its end", async () => {
  const { recorder, follower } = following(LOG, { sends: 6 });
  await follower.send(QUESTION);
  assert.deepEqual(recorder.numbers, [2, 3, 4, 5]);
  assert.deepEqual(recorder.acceptances, [TASK]);
  assert.equal(recorder.state, "completed");
  assert.deepEqual(recorder.connections, ["live", "idle"]);
});

test("a lost connection is continued without a gap and without a repetition", async () => {
  const { supervisor, recorder, follower } = following(
    LOG,
    { sends: 2, breaks: true },
    { error: new UnreachableError("no connection") },
    { sends: 1, breaks: true },
    { sends: 0, breaks: true },
    { sends: 9 },
  );
  await follower.send(QUESTION);
  assert.equal(supervisor.sent.length, 1);
  assert.deepEqual(supervisor.subscriptions, [2, 2, 3, 3]);
  assert.deepEqual(recorder.numbers, [2, 3, 4, 5]);
  assert.ok(recorder.connections.includes("lost"));
  assert.equal(recorder.connections.at(-1), "idle");
});

test("a message whose response was lost is sent again with its id", async () => {
  const { supervisor, recorder, follower } = following(
    LOG,
    { error: new UnreachableError("no connection") },
    { error: new RequestError(503, "starting") },
    { sends: 6 },
  );
  await follower.send(QUESTION);
  assert.deepEqual(
    supervisor.sent.map((message) => message.messageId),
    ["q1", "q1", "q1"],
  );
  assert.deepEqual(recorder.numbers, [2, 3, 4, 5]);
  assert.deepEqual(recorder.rejections, []);
});

test("a rejected message is not sent again", async () => {
  const rejection = Object.assign(new Error("The text is too long."), { envelopeCode: -32602 });
  const { supervisor, recorder, follower } = following(LOG, { error: rejection });
  await follower.send(QUESTION);
  assert.equal(supervisor.sent.length, 1);
  assert.deepEqual(recorder.rejections, ["The text is too long."]);
});

test("a message that came while the server was stopping is sent again", async () => {
  const data = [{ reason: "INTERNAL_ERROR", metadata: { server: "stopping" } }];
  const stopping = Object.assign(new Error("stopping"), { envelopeCode: -32603, data });
  const { supervisor, recorder, follower } = following(LOG, { error: stopping }, { sends: 6 });
  await follower.send(QUESTION);
  assert.equal(supervisor.sent.length, 2);
  assert.deepEqual(recorder.rejections, []);
});

test("a stream that ends with a hand-over is continued", async () => {
  const log = [...LOG.slice(0, 3), status(3, "working", {}, "The supervisor is stopping.")];
  const { supervisor, recorder, follower } = following(log, { sends: 4 }, { sends: 9 });
  const subscribe = supervisor.subscribe.bind(supervisor);
  supervisor.subscribe = (taskId, lastSeq) => {
    supervisor.log = LOG;
    return subscribe(taskId, lastSeq);
  };
  await follower.send(QUESTION);
  assert.deepEqual(supervisor.subscriptions, [3]);
  assert.deepEqual(recorder.numbers, [2, 3, 4, 5]);
});

test("missing updates are fetched", async () => {
  const { supervisor, recorder, follower } = following([LOG[0]!, LOG[1]!, LOG[3]!], { sends: 3 });
  supervisor.subscribe = async function* (_taskId: string, lastSeq: number) {
    supervisor.subscriptions.push(lastSeq);
    yield* LOG.slice(lastSeq);
  };
  await follower.send(QUESTION);
  assert.deepEqual(supervisor.subscriptions, [2]);
  assert.deepEqual(recorder.numbers, [2, 3, 4, 5]);
});

test("a closed follower reports nothing more, and another one continues from there", async () => {
  const { supervisor, recorder, decoder, follower } = following(LOG, { sends: 6 }, { sends: 6 });
  recorder.received = (events) => {
    recorder.numbers.push(...events.map((one) => one.seq));
    if (recorder.numbers.at(-1) === 3 && events.length > 0) follower.close();
  };
  await follower.send(QUESTION);
  assert.deepEqual(recorder.numbers, [2, 3]);
  assert.equal(decoder.lastSeq, 3);
  await follower.follow(TASK);
  assert.deepEqual(supervisor.subscriptions, [3]);
  assert.deepEqual(recorder.numbers, [2, 3, 4, 5]);
});
