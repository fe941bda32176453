// Prints what the page shows of recordings, for tests/ui/test_reducers_agree.py: `page run tests/summary.ts FILE...`
// gives JSON with a list for each file, which has a summary for each ending of a run.

import { readFileSync } from "node:fs";

import type { RecordedLine } from "../src/events";
import { reduce } from "../src/reducer";
import { EMPTY_RUN, type AgentView, type RunView, type ToolView } from "../src/view";

const summaries = process.argv.slice(2).map((file) => {
  const lines = readFileSync(file, "utf8").trim().split("\n");
  return summariesOf(lines.map((line) => JSON.parse(line) as RecordedLine));
});
process.stdout.write(JSON.stringify(summaries));

function summariesOf(lines: RecordedLine[]) {
  const found = [];
  let view = EMPTY_RUN;
  for (const [index, line] of lines.entries()) {
    if (line.event === "asked") {
      // After forms, the line is the answer to one of them.
      if (view.ending?.event !== "input_required") view = EMPTY_RUN;
      continue;
    }
    view = reduce(view, line, index);
    if (view.ending !== null) found.push(summaryOf(view));
  }
  return found;
}

function summaryOf(view: RunView) {
  const shown = view.messages.filter((message) => !message.superseded && message.text.trim());
  return {
    steps: view.steps.map(({ title, agent, status }) => ({ title, agent, status })),
    calls: view.calls.flatMap((call) => [callOf(call), ...(call.kind === "agent" ? call.tools.map(callOf) : [])]),
    narration: shown.filter((message) => message.id !== view.answerId).map((message) => message.text),
    answer: shown.find((message) => message.id === view.answerId)?.text ?? null,
    ending: view.ending?.event,
    forms: view.forms.map((form) => form.form_id),
    superseded: view.messages.filter((message) => message.superseded).length,
  };
}

function callOf(call: AgentView | ToolView) {
  const { callId, agent, state, reason } = call;
  return { id: callId, agent, tool: call.kind === "tool" ? call.tool : null, state, reason };
}
