import assert from "node:assert/strict";
import { test } from "node:test";

import type { RunEvent } from "../src/events";
import { reduce, resumed } from "../src/reducer";
import { EMPTY_RUN, type RunView } from "../src/view";

function folded(events: RunEvent[], view: RunView = EMPTY_RUN): RunView {
  return events.reduce((after, event, index) => reduce(after, event, index), view);
}

const says = (id: string, text: string): RunEvent => ({
  event: "text_delta",
  agent: "supervisor",
  message_id: id,
  text,
});
const ended = (id: string): RunEvent => ({ event: "message_ended", agent: "supervisor", message_id: id });
const plan = (status: "pending" | "completed"): RunEvent => ({
  event: "plan_updated",
  title: "Look",
  steps: [
    { id: "s2", title: "Compare", status: "pending", order: 1 },
    { id: "s1", title: "[Jira] Search", status, order: 0, agent: "jira" },
  ],
});
const agentStarted: RunEvent = { event: "agent_started", agent: "jira", call_id: "a", plan_step_id: "s1" };
const agentFinished: RunEvent = { event: "agent_finished", agent: "jira", call_id: "a", ok: true, plan_step_id: "s1" };
const toolStarted: RunEvent = {
  event: "tool_started",
  agent: "jira",
  tool: "search",
  call_id: "t",
  parent_call_id: "a",
};
const asks = (...ids: string[]): RunEvent => ({
  event: "input_required",
  forms: ids.map((id) => ({ form_id: id, title: id })),
});

test("a plan is sorted, without the agents' tags", () => {
  const view = folded([plan("pending")]);
  assert.deepEqual(
    view.steps.map((step) => [step.id, step.title, step.agent]),
    [
      ["s1", "Search", "jira"],
      ["s2", "Compare", null],
    ],
  );
});

test("the answer is known while it is written, narration is not taken for it", () => {
  let view = folded([says("m1", "I ask"), says("m1", " Jira."), ended("m1")]);
  assert.equal(view.answerId, "m1");
  view = folded([plan("pending"), agentStarted], view);
  assert.equal(view.answerId, null);
  view = folded([agentFinished, says("m2", "Next, "), ended("m2")], view);
  assert.equal(view.answerId, null, "an agent's step is open");
  view = folded([plan("completed"), says("m3", "Found 3.")], view);
  assert.equal(view.answerId, "m3");
  view = folded([{ event: "final_result", text: "Found 3.", answer_message_id: "m3" }], view);
  assert.equal(view.answerId, "m3");
  assert.deepEqual(
    view.messages.map((message) => message.text),
    ["I ask Jira.", "Next, ", "Found 3."],
  );
});

test("the answer is the message that the result names, and is added if it was not streamed", () => {
  const result: RunEvent = { event: "final_result", text: "Done.", answer_message_id: "m9" };
  assert.deepEqual(folded([says("m1", "I look."), result]).messages.map((message) => message.text), [
    "I look.",
    "Done.",
  ]);
  const streamed = folded([says("m1", "I look."), says("m9", "Do"), result]);
  assert.deepEqual(streamed.messages.map((message) => message.text), ["I look.", "Done."]);
  assert.equal(streamed.answerId, "m9");
});

test("agents' texts are not shown", () => {
  const view = folded([agentStarted, { ...says("x", "raw"), parent_call_id: "a" } as RunEvent]);
  assert.deepEqual(view.messages, []);
});

test("a message that a crash cut off is superseded", () => {
  const view = folded([says("m1", "The ans"), { ...says("m2", "The answer"), supersedes: "m1" } as RunEvent]);
  assert.deepEqual(
    view.messages.map(({ id, superseded, ended }) => [id, superseded, ended]),
    [
      ["m1", true, true],
      ["m2", false, false],
    ],
  );
  assert.equal(view.answerId, "m2");
});

test("calls without an end wait while the run asks, and run again when it continues", () => {
  const waiting = folded([agentStarted, toolStarted, asks("f1")]);
  const states = (view: RunView) =>
    view.calls.flatMap((call) => [call.state, ...(call.kind === "agent" ? call.tools.map((tool) => tool.state) : [])]);
  assert.deepEqual(states(waiting), ["waiting", "waiting"]);
  assert.equal(waiting.forms.length, 1);
  const later = folded([{ event: "tool_finished", agent: "jira", tool: "search", call_id: "t", ok: true }], waiting);
  assert.deepEqual(states(later), ["running", "completed"]);
  assert.deepEqual([later.forms, later.ending], [[], null]);
  const canceled = folded([{ event: "canceled" }], waiting);
  assert.deepEqual(states(canceled), ["unknown", "unknown"]);
  assert.deepEqual(canceled.forms, []);
});

test("the other forms stay open after an answer to one of them", () => {
  const view = folded([says("m1", "…")], resumed(folded([asks("f1", "f2")]), "f1"));
  assert.deepEqual(view.forms.map((form) => form.form_id), ["f2"]);
  assert.deepEqual(folded([asks("f2", "f3")], view).forms.map((form) => form.form_id), ["f2", "f3"]);
});

test("parts of the view that do not change are shared", () => {
  const before = folded([plan("pending"), agentStarted, says("m1", "one")]);
  const after = folded([says("m2", "two")], before);
  assert.equal(after.steps, before.steps);
  assert.equal(after.calls, before.calls);
  assert.equal(after.messages[0], before.messages[0]);
});
