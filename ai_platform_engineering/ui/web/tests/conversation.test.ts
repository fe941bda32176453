import assert from "node:assert/strict";
import { test } from "node:test";

import type { StoredTask } from "../src/api";
import type { RecordedLine } from "../src/events";
import { ConversationState } from "../src/state/conversation";
import { Frames } from "../src/state/frames";
import type { TurnState } from "../src/state/turn";
import { FakeSupervisor } from "./fake_supervisor";
import { artifact, dataPart, delta, final, status, TASK } from "./updates";

function prepared(supervisor: FakeSupervisor): ConversationState {
  const frames = new Frames((apply) => apply(true));
  return new ConversationState("context-1", { supervisor, frames, subject: () => "ann" }, () => {});
}

function form(seq: number, id: string, response = "") {
  return artifact(seq, "input_required", {}, dataPart({ form_id: id, input_title: id, response, input_fields: [] }));
}

function only(conversation: ConversationState): TurnState {
  const [turn, ...others] = conversation.turns.value;
  assert.ok(turn !== undefined && others.length === 0);
  return turn;
}

function openForm(turn: TurnState, id: string) {
  const found = turn.run.value.forms.find((one) => one.form_id === id);
  assert.ok(found);
  return found;
}

test("a question becomes a turn with its events and its answer", async () => {
  const supervisor = new FakeSupervisor({ sends: 9 });
  supervisor.log = [status(1, "working"), delta(2, "Hi"), final(3, "Hi"), status(4, "completed")];
  const conversation = prepared(supervisor);
  await conversation.ask("hello", { workflow: "w" });
  const turn = only(conversation);
  assert.deepEqual(supervisor.sent, [{ ...turn.message, contextId: "context-1", text: "hello", metadata: { workflow: "w" } }]);
  assert.equal(turn.state.value, "completed");
  assert.equal(turn.taskId.value, TASK);
  assert.equal(turn.run.value.messages[0]?.text, "Hi");
  assert.deepEqual(turn.events.map((line) => line.seq), [2, 3]);
});

test("an answer continues the run; one that is not accepted says why; a second form stays open", async () => {
  const supervisor = new FakeSupervisor({ sends: 4 });
  supervisor.log = [status(1, "working"), form(2, "f1"), form(3, "f2"), status(4, "input-required")];
  const conversation = prepared(supervisor);
  await conversation.ask("create a repo");
  const turn = only(conversation);
  assert.equal(turn.state.value, "input-required");

  supervisor.log.push(form(5, "f1", "The name is missing."), form(6, "f2"), status(7, "input-required"));
  supervisor.then({ sends: 3 });
  const refused = await turn.answer(openForm(turn, "f1"), { kind: "values", values: { name: "" } });
  assert.equal(refused, "The name is missing.");
  assert.deepEqual(turn.decisions.value, []);

  supervisor.log.push(status(8, "working"), delta(9, "Thanks."), form(10, "f2"), status(11, "input-required"));
  supervisor.then({ sends: 2, breaks: true }, { sends: 2 });
  assert.equal(await turn.answer(openForm(turn, "f1"), { kind: "approve", always: true }), null);
  assert.deepEqual(
    turn.run.value.forms.map((one) => one.form_id),
    ["f2"],
  );
  assert.deepEqual(
    turn.decisions.value.map(({ form_id, kind, by, always }) => ({ form_id, kind, by, always })),
    [{ form_id: "f1", kind: "approve", by: "ann", always: true }],
  );
  assert.deepEqual(supervisor.sent.at(-1)?.data, {
    resume: { form_id: "f1", decisions: [{ type: "approve", remember: true }] },
  });
  assert.equal(supervisor.sent.at(-1)?.taskId, TASK);

  supervisor.log.push(status(12, "working"), final(13, "Done.", "m2"), status(14, "completed"));
  supervisor.then({ sends: 3 });
  assert.equal(await turn.answer(openForm(turn, "f2"), { kind: "reject", reason: "no" }), null);
  await turn.answer({ form_id: "f2", title: "f2" }, { kind: "cancel" }).then((problem) => assert.ok(problem));
  assert.equal(turn.state.value, "completed");
  assert.equal(turn.connection.value, "idle");
});

test("a message that the supervisor takes as a reply to the open form begins no turn", async () => {
  const supervisor = new FakeSupervisor({ sends: 3 });
  supervisor.log = [status(1, "working"), form(2, "f1"), status(3, "input-required")];
  const conversation = prepared(supervisor);
  await conversation.ask("create a repo");
  supervisor.log.push(form(4, "f1", "A form is open."), status(5, "input-required"));
  supervisor.then({ sends: 2 }, { sends: 2 });
  await conversation.ask("what is new?");
  const turn = only(conversation);
  await turn.answer({ form_id: "none", title: "" }, { kind: "cancel" });
  assert.equal(turn.question, "create a repo");
  assert.equal(turn.run.value.forms[0]?.response, "A form is open.");
  assert.deepEqual(
    supervisor.sent.slice(1).map((message) => message.messageId),
    Array(2).fill(supervisor.sent[1]?.messageId),
  );
});

function stored(id: string, state: StoredTask["state"], lastSeq: number, events: RecordedLine[]): StoredTask {
  const times = { created: "2026-11-17T12:00:00Z", changed: "2026-11-17T12:00:01Z" };
  return { id, state, question: id, message_id: `m-${id}`, last_seq: lastSeq, events, decisions: [], ...times };
}

const SAID: RecordedLine = { event: "text_delta", agent: "supervisor", message_id: "m1", text: "a", seq: 2, at: 1 };

test("a stored conversation is shown, and its unfinished task is followed from its last update", async () => {
  const supervisor = new FakeSupervisor({ sends: 9 });
  supervisor.log = [status(1, "working"), delta(2, "a"), delta(3, "b"), final(4, "ab"), status(5, "completed")];
  const conversation = prepared(supervisor);
  const done: RecordedLine = { event: "final_result", text: "old", answer_message_id: "m0", seq: 3, at: 2 };
  const tasks = [stored("task-0", "completed", 4, [done]), stored(TASK, "working", 2, [SAID])];
  const rested = new Promise<void>((resolve) => {
    const before = conversation.rested.bind(conversation);
    conversation.rested = () => {
      before();
      resolve();
    };
  });
  conversation.merge({ id: "context-1", name: "Mine", tasks });
  await rested;
  assert.deepEqual(supervisor.subscriptions, [2]);
  assert.deepEqual(
    conversation.turns.value.map((turn) => [turn.state.value, turn.run.value.messages.map(({ text }) => text)]),
    [
      ["completed", ["old"]],
      ["completed", ["ab"]],
    ],
  );
});

test("what another client did is added to the turns that are there", () => {
  const conversation = prepared(new FakeSupervisor());
  const asked: RecordedLine = { event: "input_required", forms: [{ form_id: "f1", title: "" }], seq: 3, at: 2 };
  conversation.merge({ id: "context-1", name: null, tasks: [stored(TASK, "input-required", 3, [SAID, asked])] });
  const turn = only(conversation);
  const done: RecordedLine = { event: "final_result", text: "a", answer_message_id: "m1", seq: 5, at: 9 };
  conversation.merge({ id: "context-1", name: null, tasks: [stored(TASK, "completed", 6, [SAID, asked, done])] });
  assert.equal(only(conversation), turn);
  assert.equal(turn.state.value, "completed");
  assert.deepEqual(turn.run.value.forms, []);
  assert.equal(turn.events.length, 3);
});
