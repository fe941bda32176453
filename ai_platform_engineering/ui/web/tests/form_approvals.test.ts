import assert from "node:assert/strict";
import { test } from "node:test";

import type { Form } from "../src/events";
import { argumentsOf, introductionOf, isApproval, remarkOf, remembered } from "../src/forms/tool_calls";
import { argumentText, changedArguments } from "../src/forms/arguments";

const FIELDS = [{ field_name: "decision", field_type: "select" as const, field_values: ["approve", "reject"] }];

function approval(call: Record<string, unknown>, more: Partial<Form> = {}): Form {
  return { form_id: "f", title: "Approve?", fields: FIELDS, action_requests: [call], ...more };
}

test("a form that only shows calls is not an approval", () => {
  assert.ok(isApproval(approval({ tool: "sync" })));
  assert.ok(isApproval(approval({ tool: "sync" }, { fields: [] })));
  assert.ok(!isApproval(approval({ tool: "sync" }, { fields: [{ field_name: "revision" }] })));
  assert.ok(!isApproval({ form_id: "f", title: "", fields: FIELDS }));
});

test("the arguments that identify the target come first", () => {
  const call = { args: { branch: "x", application: "web", zone: "a" }, remember: { zone: "a" } };
  assert.deepEqual(argumentsOf(call).map(([name]) => name), ["zone", "application", "branch"]);
  assert.deepEqual(argumentsOf({ args: ["odd"] as never }), []);
});

test("the permission for the conversation is exact, and offered for a single call", () => {
  const call = { agent: "argocd", tool: "sync", effect: "write", remember: { project: null, application: "web" } };
  assert.equal(
    remembered(approval(call)),
    'Argocd may call sync with application = "web" without project, whatever else is in the call, ' +
      "until this conversation ends, unless the call is destructive.",
  );
  assert.equal(remembered(approval({ tool: "sync" })), null);
  assert.equal(remembered({ ...approval(call), action_requests: [call, call] }), null);
});

test("the error of a field is not repeated above the form", () => {
  const form: Form = {
    form_id: "f",
    title: "",
    response: "`a` is required. Please enter `b` again.",
    fields: [{ field_name: "a", error: "`a` is required." }],
  };
  assert.deepEqual(introductionOf(form), ["Please enter `b` again."]);
});

test("a sentence about the call with shortened arguments is not repeated", () => {
  const call = { tool: "sync", description: "Call sync with x=1. This only reads.", effect: "read" };
  const form = approval(call, { description: "Argo CD wants to call sync with x=1. This only reads." });
  assert.deepEqual(introductionOf(form), []);
  assert.equal(remarkOf(form, call), "");
  const foreign = { tool: "sync", description: "Deploys at once." };
  assert.deepEqual(introductionOf(approval(foreign, { description: "Please check." })), ["Please check."]);
  assert.equal(remarkOf(approval(foreign), foreign), "Deploys at once.");
});

test("only changed arguments are sent, with their types", () => {
  const args: [string, unknown][] = [["name", "web"], ["count", 2], ["labels", { a: [1, 2] }], ["force", false]];
  const entries = { name: "web2", count: "3", labels: argumentText({ a: [1, 2] }), force: "true" };
  assert.deepEqual(changedArguments(args, entries), { ok: true, changed: { name: "web2", count: 3, force: true } });
  assert.deepEqual(changedArguments(args, { labels: '{"a":[1,2]}' }), { ok: true, changed: {} });
  assert.deepEqual(changedArguments([["name", "5"]], { name: "6" }), { ok: true, changed: { name: "6" } });
});

test("an argument that is not understood is not sent", () => {
  const outcome = changedArguments([["count", 2], ["labels", {}], ["id", 7]], {
    count: '"3"',
    labels: "{a: 1}",
    id: "12345678901234567890",
  });
  assert.ok(!outcome.ok);
  assert.deepEqual(Object.keys(outcome.errors), ["count", "labels", "id"]);
});

test("a value that was shown in part is replaced as a whole or stays", () => {
  const args: [string, unknown][] = [["url", "https://***@example.org"], ["env", { token: "***", region: "eu" }]];
  const change = (entries: Record<string, string>) => changedArguments(args, entries);
  assert.ok(!change({ url: "http://***@example.org" }).ok);
  assert.deepEqual(change({ url: "none" }), { ok: true, changed: { url: "none" } });
  assert.deepEqual(change({ env: '{"token": "***", "region": "us"}' }), {
    ok: true,
    changed: { env: { token: "***", region: "us" } },
  });
  assert.ok(!change({ env: '{"secret": "***", "region": "us"}' }).ok);
});

test("an argument with hidden characters is kept when its input stays empty", () => {
  assert.equal(argumentText("a\u202eb"), "");
  assert.deepEqual(changedArguments([["name", "a\u202eb"]], { name: "" }), { ok: true, changed: {} });
});
