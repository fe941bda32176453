import assert from "node:assert/strict";
import { test } from "node:test";

import { findAgents } from "../src/agents/filtering";
import type { AgentRow } from "../src/api";
import { age, partsOf } from "../src/knowledge/values";

function agent(name: string, description: string, tools: string[]): AgentRow {
  return {
    name,
    title: name.toUpperCase(),
    description,
    enabled: true,
    placement: "in-process",
    why: "",
    sandbox: true,
    reachable: true,
    problem: null,
    missing: [],
    examples: [],
    tools: tools.map((tool) => ({ name: tool, description: `Do ${tool}.`, read_only: true, destructive: false })),
  };
}

const AGENTS = [
  agent("argocd", "Applications: sync and rollback.", ["sync_application", "rollback_application"]),
  agent("jira", "Issues, also about a rollback.", ["create_issue"]),
];

function found(text: string): [string, string[], boolean][] {
  return findAgents(AGENTS, text).map(({ agent, tools, byTools }) => [
    agent.name,
    tools.map((tool) => tool.name),
    byTools,
  ]);
}

test("without a filter all agents are found", () => {
  assert.deepEqual(found("  ").map(([name]) => name), ["argocd", "jira"]);
});

test("a name finds the agent with all its tools", () => {
  assert.deepEqual(found("ARGO"), [["argocd", ["sync_application", "rollback_application"], false]]);
});

test("a tool is found before a description", () => {
  assert.deepEqual(found("rollback"), [
    ["argocd", ["rollback_application"], true],
    ["jira", ["create_issue"], false],
  ]);
});

test("every word must match, in the names of the agent and its tool together", () => {
  assert.deepEqual(found("argocd sync application"), [["argocd", ["sync_application"], true]]);
  assert.deepEqual(found("jira sync"), []);
});

test("an age has the largest unit that fits", () => {
  const now = Date.parse("2026-03-10T12:00:00Z");
  assert.equal(age("2026-03-10T11:59:30Z", now), "30 seconds ago");
  assert.equal(age("2026-03-10T11:00:01Z", now), "59 minutes ago");
  assert.equal(age("2026-03-09T12:00:00Z", now), "yesterday");
  assert.equal(age("2024-01-01T00:00:00Z", now), "2 years ago");
});

test("the words of a snippet that matched are marked", () => {
  assert.deepEqual(partsOf("**Restart** the\n\n**gateway**…"), [
    { text: "Restart", matched: true },
    { text: " the\n", matched: false },
    { text: "gateway", matched: true },
    { text: "…", matched: false },
  ]);
  assert.deepEqual(partsOf("<b>\u202e"), [{ text: "<b>", matched: false }]);
});
