// What a run does: plan with agents and their tools, narration, timeline. It folds away when the answer is there.

import { useSignal } from "@preact/signals";
import { Component } from "preact";
import { useEffect } from "preact/hooks";

import { CheckIcon, ClockIcon, CrossIcon, QuestionIcon, RunningIcon } from "../icons";
import { clean } from "../markdown/clean_text";
import { Markdown } from "../markdown/Markdown";
import type { Turn } from "../store";
import { TEXTS } from "../texts";
import { Timeline } from "../timeline/Timeline";
import type { AgentView, CallState, RunView, StepView, ToolView } from "../view";
import { useElapsed } from "./elapsed";
import { agentName } from "./names";
import { isRunning, narrationOf } from "./turns";

export function RunDetails({ turn }: { turn: Turn }) {
  const run = turn.run.value;
  const open = useSignal(run.ending?.event !== "final_result");
  const answered = run.ending?.event === "final_result";
  useEffect(() => {
    open.value = !answered;
  }, [answered]);
  const narration = narrationOf(run);
  const elapsed = useElapsed(turn);
  if (run.steps.length === 0 && run.calls.length === 0 && narration.length === 0) return null;
  return (
    <details class="run" open={open.value} onToggle={(event) => (open.value = event.currentTarget.open)}>
      <summary>
        {isRunning(turn) ? TEXTS.run.working : TEXTS.run.details}
        <span class="soft"> · {summaryOf(run, elapsed)}</span>
      </summary>
      {/* The rest of a folded run is not rendered: a long conversation has many. */}
      {open.value && (
        <div class="run-body">
          <Narration turn={turn} />
          <Plan run={run} />
          <Timeline run={{ ...run, elapsed }} />
        </div>
      )}
    </details>
  );
}

function summaryOf(run: RunView, elapsed: number): string {
  const parts = [];
  if (run.steps.length > 0) {
    const done = run.steps.filter((step) => step.status === "completed").length;
    parts.push(TEXTS.run.steps(done, run.steps.length));
  }
  const agents = new Set(run.calls.filter((call) => call.kind === "agent").map((call) => agentName(call.agent)));
  if (agents.size > 0) parts.push([...agents].join(", "));
  if (elapsed > 0) parts.push(TEXTS.run.duration(elapsed));
  return parts.join(" · ");
}

function Narration({ turn }: { turn: Turn }) {
  return (
    <>
      {narrationOf(turn.run.value).map((message) => (
        <div key={message.id} class={message.superseded ? "narration superseded" : "narration"}>
          <Markdown text={message.text} streaming={!message.ended && isRunning(turn)} />
          {message.superseded && <p class="soft">{TEXTS.run.supersededNote}</p>}
        </div>
      ))}
    </>
  );
}

function Plan({ run }: { run: RunView }) {
  const ids = new Set(run.steps.map((step) => step.id));
  const loose = run.calls.filter((call) => call.stepId === null || !ids.has(call.stepId));
  return (
    <>
      {run.steps.length > 0 && (
        <section aria-label={TEXTS.run.plan}>
          <h3 class="plan-title">{clean(run.planTitle) || TEXTS.run.plan}</h3>
          <ol class="plan">
            {run.steps.map((step) => (
              <Step key={step.id} step={step} run={run} />
            ))}
          </ol>
        </section>
      )}
      <Calls calls={loose} />
    </>
  );
}

function Step({ step, run }: { step: StepView; run: RunView }) {
  const calls = run.calls.filter((call) => call.stepId === step.id);
  // The line of the step names its agent already.
  const only = calls.length === 1 && calls[0]?.kind === "agent" && calls[0].agent === step.agent ? calls[0] : null;
  return (
    <li class={`step ${step.status}`}>
      <span class="step-line">
        <StepIcon status={step.status} isRunning={run.ending === null} />
        {step.agent && <span class="badge">{agentName(step.agent)}</span>}
        <span class="step-title">{clean(step.title)}</span>
        <span class="visually-hidden">({TEXTS.run.status[step.status]})</span>
        {only && <Outcome call={only} />}
      </span>
      <Calls calls={only ? only.tools : calls} />
    </li>
  );
}

function StepIcon({ status, isRunning }: { status: StepView["status"]; isRunning: boolean }) {
  switch (status) {
    case "completed":
      return <CheckIcon />;
    case "failed":
      return <CrossIcon />;
    case "in_progress":
      return isRunning ? <RunningIcon /> : <ClockIcon />;
    default:
      return <ClockIcon />;
  }
}

function Calls({ calls }: { calls: readonly (AgentView | ToolView)[] }) {
  if (calls.length === 0) return null;
  return (
    <ul class="calls">
      {calls.map((call) => (
        <Call key={call.callId} call={call} />
      ))}
    </ul>
  );
}

/** Rendered again only when the call has changed: a run may have a thousand calls, and each event changes one. */
class Call extends Component<{ call: AgentView | ToolView }> {
  override shouldComponentUpdate(next: { call: AgentView | ToolView }) {
    return next.call !== this.props.call;
  }

  override render({ call }: { call: AgentView | ToolView }) {
    return (
      <li>
        <CallLine call={call} />
        {call.kind === "agent" && <Calls calls={call.tools} />}
      </li>
    );
  }
}

function CallLine({ call }: { call: AgentView | ToolView }) {
  return (
    <span class={`call ${call.state}`}>
      <CallIcon state={call.state} />
      {call.kind === "agent" ? (
        <span>{agentName(call.agent)}</span>
      ) : (
        <code class="tool-name">{clean(call.skill ? `${call.tool} (${TEXTS.run.skill(call.skill)})` : call.tool)}</code>
      )}
      <Outcome call={call} />
    </span>
  );
}

function Outcome({ call }: { call: AgentView | ToolView }) {
  const seconds = call.endedAt === null ? null : call.endedAt - call.startedAt;
  return (
    <span class="soft call-state">
      {TEXTS.run.call[call.state]}
      {call.reason && `: ${clean(call.reason)}`}
      {seconds !== null && ` · ${TEXTS.run.duration(seconds)}`}
    </span>
  );
}

function CallIcon({ state }: { state: CallState }) {
  switch (state) {
    case "completed":
      return <CheckIcon />;
    case "failed":
      return <CrossIcon />;
    case "running":
      return <RunningIcon />;
    default:
      return <QuestionIcon />;
  }
}
