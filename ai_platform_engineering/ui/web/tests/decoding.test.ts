import assert from "node:assert/strict";
import { test } from "node:test";

import { TaskState } from "@a2a-js/sdk";

import { Decoder, GapError, isAtRest, TASK_STATES } from "../src/decoding";
import { artifact, dataPart, delta, final, status, task, textPart } from "./updates";

function decoded(decoder: Decoder, ...responses: ReturnType<typeof delta>[]) {
  return responses.flatMap((response) => decoder.feed(response));
}

test("the states are those of the protocol", () => {
  const names = Object.entries(TASK_STATES).map(([number, name]) => [
    TaskState[Number(number)],
    `TASK_STATE_${name.toUpperCase().replace("-", "_")}`,
  ]);
  for (const [expected, name] of names) assert.equal(name, expected);
  assert.equal(names.length, 8);
});

test("updates become events with their numbers", () => {
  const call = { call_id: "c1", parent_call_id: "c0", plan_step_id: "s1", tool_name: "search", source_agent: "jira" };
  const steps = [{ id: "s1", title: "Search", status: "in_progress", order: 0, agent: "jira" }];
  const decoder = new Decoder();
  assert.deepEqual(
    decoded(
      decoder,
      task("submitted"),
      status(1, "working"),
      artifact(2, "plan_updated", {}, textPart("plan"), dataPart({ title: "T", steps })),
      artifact(3, "tool_started", call),
      artifact(4.0, "tool_finished", { ...call, ok: false, reason: "HTTP 401" }),
      delta(5, "Hello"),
      artifact(6, "message_ended", { message_id: "m1" }),
      artifact(7, "of_the_future", {}),
      final(8, "Hello"),
      status(9, "completed"),
    ),
    [
      { seq: 2, event: { event: "plan_updated", title: "T", steps } },
      {
        seq: 3,
        event: {
          event: "tool_started",
          agent: "jira",
          tool: "search",
          call_id: "c1",
          parent_call_id: "c0",
          plan_step_id: "s1",
          skill: null,
        },
      },
      {
        seq: 4,
        event: {
          event: "tool_finished",
          agent: "jira",
          tool: "search",
          call_id: "c1",
          parent_call_id: "c0",
          plan_step_id: "s1",
          skill: null,
          ok: false,
          reason: "HTTP 401",
        },
      },
      {
        seq: 5,
        event: {
          event: "text_delta",
          agent: "supervisor",
          message_id: "m1",
          text: "Hello",
          parent_call_id: null,
          supersedes: null,
        },
      },
      { seq: 6, event: { event: "message_ended", agent: "supervisor", message_id: "m1", parent_call_id: null } },
      { seq: 8, event: { event: "final_result", text: "Hello", answer_message_id: "m1", limit: null, budget_warning: null } },
    ],
  );
  assert.equal(decoder.lastSeq, 9);
  assert.equal(decoder.state, "completed");
});

test("repeated updates are dropped, and a gap is reported once", () => {
  const decoder = new Decoder(3);
  assert.deepEqual(decoded(decoder, delta(2, "old"), delta(3, "old")), []);
  assert.throws(() => decoder.feed(delta(6, "later")), GapError);
  assert.equal(decoder.lastSeq, 3);
  assert.equal(decoded(decoder, delta(6, "the updates before were deleted")).length, 1);
});

test("forms and the status are one event, with the number of the status", () => {
  const form = {
    user_input: true,
    form_id: "f1",
    input_title: "Create",
    input_fields: [
      { field_name: "name", field_type: "text", required: true, validation: { max_length: 5.0, minimum: "12" } },
      { field_name: "color", field_values: ["red", 2], value: "red", field_error: "no", required: false },
    ],
  };
  const decoder = new Decoder(4);
  const [asked] = decoded(
    decoder,
    artifact(5, "input_required", {}, textPart("?"), dataPart(form)),
    status(6, "input-required"),
  );
  assert.equal(asked?.seq, 6);
  assert.deepEqual(asked?.event, {
    event: "input_required",
    forms: [
      {
        form_id: "f1",
        title: "Create",
        description: "",
        response: "",
        agent: null,
        action_requests: [],
        fields: [
          {
            field_name: "name",
            field_type: "text",
            field_description: "",
            field_values: null,
            default_value: null,
            required: true,
            value: null,
            rules: { minimum: 12, maximum: null, integer: false, min_length: null, max_length: 5, pattern: null },
            error: null,
          },
          {
            field_name: "color",
            field_type: "select",
            field_description: "",
            field_values: ["red", "2"],
            default_value: null,
            required: false,
            value: "red",
            rules: null,
            error: "no",
          },
        ],
      },
    ],
  });
  assert.ok(decoder.state !== null && isAtRest(decoder.state));
});

test("a partial result belongs to the failure", () => {
  const events = decoded(
    new Decoder(),
    artifact(1, "partial_result", {}, textPart("half")),
    status(2, "failed", { error_code: "timeout" }, "It took too long."),
  );
  assert.deepEqual(events, [
    { seq: 2, event: { event: "failed", code: "timeout", message: "It took too long.", partial: "half" } },
  ]);
});

test("a status of the A2A SDK ends the run; later ones do not", () => {
  const decoder = new Decoder();
  assert.equal(decoded(decoder, status(null, "working")).length, 0);
  assert.deepEqual(decoded(decoder, status(null, "failed", {}, "Internal error")), [
    { seq: 0, event: { event: "failed", code: "", message: "Internal error", partial: null } },
  ]);
  assert.equal(decoded(decoder, status(null, "failed", {}, "Internal error")).length, 0);
});

test("a task that is handed over at a stop of the server is not at rest", () => {
  const decoder = new Decoder(7, "working");
  assert.deepEqual(decoded(decoder, status(7, "working", {}, "The supervisor is stopping.")), []);
  assert.equal(decoder.state, "working");
});
