// The fold over a run: `reduce(view, event, at) -> view`. Pure; unchanged parts of the view are shared.

import type {
  AgentFinished,
  AgentStarted,
  Ending,
  FinalResult,
  PlanStep,
  PlanUpdated,
  RecordedLine,
  RunEvent,
  TextDelta,
  ToolFinished,
  ToolStarted,
} from "./events";
import { EMPTY_RUN, type AgentView, type CallState, type MessageView, type RunView, type ToolView } from "./view";

type CallView = AgentView | ToolView;

/** `at` is the time of the event, in seconds since the start of the run. */
export function reduce(view: RunView, event: RunEvent, at: number): RunView {
  const timed = { ...view, elapsed: Math.max(view.elapsed, at) };
  const continues = view.ending?.event === "input_required" && event.event !== "input_required";
  return apply(continues ? resumed(timed, null) : timed, event);
}

/** The view of the events so far. Lines without a time have the time of the line before. */
export function fold(lines: readonly RecordedLine[], view: RunView = EMPTY_RUN): RunView {
  let after = view;
  for (const line of lines) {
    if (line.event !== "asked") after = reduce(after, line, line.at ?? after.elapsed);
  }
  return after;
}

/** The view after a person answered one of the open forms. The run continues; the other forms stay open. */
export function resumed(view: RunView, formId: string | null): RunView {
  return {
    ...view,
    ending: null,
    forms: formId === null ? [] : view.forms.filter((form) => form.form_id !== formId),
    calls: view.calls.map((call) => withState(call, "waiting", "running")),
  };
}

/*
 * Which message is the answer is certain only at the end. While the run works, it is the message that is being written
 * if no call runs and every agent's step of the plan is settled. When a call starts or the plan gets an open step of an
 * agent, all messages until then are narration.
 */
function apply(view: RunView, event: RunEvent): RunView {
  switch (event.event) {
    case "text_delta":
      // An agent's text is input for the supervisor, which writes the answer.
      return event.parent_call_id == null ? write(view, event) : view;
    case "message_ended":
      return { ...view, messages: replaced(view.messages, event.message_id, (one) => ({ ...one, ended: true })) };
    case "agent_started":
      return start(view, agentView(event, view.elapsed));
    case "tool_started":
      return startTool(view, event);
    case "agent_finished":
    case "tool_finished":
      return finish(view, event);
    case "plan_updated":
      return plan(view, event);
    default:
      return end(view, event);
  }
}

function write(view: RunView, delta: TextDelta): RunView {
  let messages = view.messages;
  if (delta.supersedes != null) {
    messages = replaced(messages, delta.supersedes, (one) => ({ ...one, ended: true, superseded: true }));
  }
  messages = messages.some((one) => one.id === delta.message_id)
    ? replaced(messages, delta.message_id, (one) => ({ ...one, text: one.text + delta.text }))
    : [...messages, { id: delta.message_id, text: delta.text, ended: false, superseded: false }];
  const mayBeAnswer = view.calls.every((call) => call.state !== "running") && agentStepsAreSettled(view);
  return { ...view, messages, answerId: mayBeAnswer ? delta.message_id : view.answerId };
}

function agentStepsAreSettled(view: RunView): boolean {
  return view.steps.every((step) => !step.agent || step.status === "completed" || step.status === "failed");
}

function start(view: RunView, call: CallView): RunView {
  return { ...view, calls: [...view.calls.filter((one) => one.callId !== call.callId), call], answerId: null };
}

function startTool(view: RunView, event: ToolStarted): RunView {
  const tool = toolView(event, view.elapsed);
  const parent = view.calls.find((call) => call.kind === "agent" && call.callId === event.parent_call_id);
  if (parent?.kind !== "agent") return start(view, tool);
  const tools = [...parent.tools.filter((one) => one.callId !== tool.callId), tool];
  return { ...view, calls: view.calls.map((call) => (call === parent ? { ...parent, tools } : call)) };
}

function finish(view: RunView, event: AgentFinished | ToolFinished): RunView {
  const ended = {
    state: event.ok ? "completed" : "failed",
    reason: event.ok ? "" : (event.reason ?? ""),
    endedAt: view.elapsed,
  } as const;
  const calls = view.calls.map((call) => {
    if (call.callId === event.call_id) return { ...call, ...ended };
    if (call.kind !== "agent" || !call.tools.some((tool) => tool.callId === event.call_id)) return call;
    return { ...call, tools: call.tools.map((tool) => (tool.callId === event.call_id ? { ...tool, ...ended } : tool)) };
  });
  return { ...view, calls };
}

function plan(view: RunView, event: PlanUpdated): RunView {
  const steps = [...event.steps]
    .sort((one, other) => one.order - other.order)
    .map((step) => ({ id: step.id, title: titleOf(step), status: step.status, agent: step.agent ?? null }));
  const after = { ...view, planTitle: event.title ?? "", steps };
  return agentStepsAreSettled(after) ? after : { ...after, answerId: null };
}

/** The title without a leading `[agent]`, which some models write. */
function titleOf(step: PlanStep): string {
  const tag = `[${step.agent ?? ""}]`;
  return step.agent && step.title.toLowerCase().startsWith(tag.toLowerCase())
    ? step.title.slice(tag.length).trimStart()
    : step.title;
}

function end(view: RunView, ending: Ending): RunView {
  const isAsking = ending.event === "input_required";
  const after: RunView = {
    ...view,
    ending,
    forms: isAsking ? ending.forms : [],
    calls: view.calls.map((call) => withState(call, "running", isAsking ? "waiting" : "unknown")),
    messages: view.messages.map((message) => (message.ended ? message : { ...message, ended: true })),
    answerId: null,
  };
  return ending.event === "final_result" ? answer(after, ending) : after;
}

function answer(view: RunView, result: FinalResult): RunView {
  const id = result.answer_message_id;
  const isStreamed = view.messages.some((message) => message.id === id);
  const messages = isStreamed
    ? replaced(view.messages, id, (one) => ({ ...one, text: result.text }))
    : [...view.messages, { id, text: result.text, ended: true, superseded: false }];
  return { ...view, messages, answerId: id };
}

function replaced(
  messages: readonly MessageView[],
  id: string,
  change: (message: MessageView) => MessageView,
): readonly MessageView[] {
  return messages.map((message) => (message.id === id ? change(message) : message));
}

function withState(call: CallView, from: CallState, to: CallState): CallView {
  if (call.kind === "tool") return call.state === from ? { ...call, state: to } : call;
  const tools = call.tools.some((tool) => tool.state === from)
    ? call.tools.map((tool) => (tool.state === from ? { ...tool, state: to } : tool))
    : call.tools;
  return call.state === from || tools !== call.tools
    ? { ...call, tools, state: call.state === from ? to : call.state }
    : call;
}

function agentView(event: AgentStarted, at: number): AgentView {
  return { kind: "agent", ...startedCall(event, at), tools: [] };
}

function toolView(event: ToolStarted, at: number): ToolView {
  return { kind: "tool", ...startedCall(event, at), tool: event.tool, skill: event.skill ?? null };
}

function startedCall(event: AgentStarted | ToolStarted, at: number) {
  return {
    callId: event.call_id,
    agent: event.agent,
    state: "running",
    reason: "",
    stepId: event.plan_step_id ?? null,
    startedAt: at,
    endedAt: null,
  } as const;
}
