import assert from "node:assert/strict";
import { test } from "node:test";

import { layoutOf, parallelAgents } from "../src/timeline/layout";
import { type AgentView, EMPTY_RUN, type RunView, type ToolView } from "../src/view";

function agent(callId: string, startedAt: number, endedAt: number | null, tools: ToolView[] = []): AgentView {
  const state = endedAt === null ? "running" : "completed";
  return { kind: "agent", callId, agent: callId, state, reason: "", stepId: null, startedAt, endedAt, tools };
}

function tool(callId: string, startedAt: number, endedAt: number | null): ToolView {
  const state = endedAt === null ? "running" : "completed";
  const call = { callId, agent: "jira", tool: callId, skill: null, state, reason: "", stepId: null } as const;
  return { kind: "tool", ...call, startedAt, endedAt };
}

const run = (elapsed: number, ...calls: (AgentView | ToolView)[]): RunView => ({ ...EMPTY_RUN, calls, elapsed });

test("every call has a row, with its tools beneath it", () => {
  const { rows } = layoutOf(run(10, agent("jira", 0, 5, [tool("search", 1, 2)]), agent("github", 0, 10)));
  assert.deepEqual(
    rows.map(({ callId, depth, x, width }) => ({ callId, depth, x, width })),
    [
      { callId: "jira", depth: 0, x: 0, width: 50 },
      { callId: "search", depth: 1, x: 10, width: 10 },
      { callId: "github", depth: 0, x: 0, width: 100 },
    ],
  );
});

test("a running call ends now, and grows", () => {
  const calls = [agent("jira", 2, null)];
  assert.equal(layoutOf(run(4, ...calls)).rows[0]?.end, 4);
  assert.equal(layoutOf(run(8, ...calls)).rows[0]?.end, 8);
  assert.equal(layoutOf(run(8, ...calls)).rows[0]?.width, 75);
});

test("a call without a duration has a visible bar within the picture", () => {
  const row = layoutOf(run(10, tool("search", 10, 10))).rows[0];
  assert.ok(row && row.width > 0 && row.x + row.width <= 100);
});

test("ticks are round and few", () => {
  const ticks = (elapsed: number) => layoutOf(run(elapsed, agent("a", 0, null))).ticks.map(({ at }) => at);
  assert.deepEqual(ticks(0.35), [0, 0.1, 0.2, 0.3]);
  assert.deepEqual(ticks(4.2), [0, 1, 2, 3, 4]);
  assert.deepEqual(ticks(47), [0, 10, 20, 30, 40]);
  assert.deepEqual(ticks(200), [0, 60, 120, 180]);
  assert.ok(ticks(40 * 86_400).length <= 6);
});

test("a run with many calls has a picture of the first ones", () => {
  const tools = Array.from({ length: 500 }, (_, index) => tool(`tool-${index}`, index, index + 1));
  const layout = layoutOf(run(500, ...tools));
  assert.equal(layout.rows.length + layout.hidden, 500);
  assert.ok(layout.hidden > 0);
});

test("agents that overlap worked in parallel", () => {
  assert.deepEqual(parallelAgents(run(9, agent("a", 0, 3), agent("b", 2, 5), agent("c", 5, 9))), ["a", "b"]);
  assert.deepEqual(parallelAgents(run(9, agent("a", 0, 3), agent("b", 3, null))), []);
});
