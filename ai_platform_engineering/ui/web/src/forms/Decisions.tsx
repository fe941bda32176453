// The forms of a run that were answered: the decision, who made it, and when.

import { useEffect } from "preact/hooks";

import type { Decision } from "../api";
import { CheckIcon, CrossIcon } from "../icons";
import type { Turn } from "../store";
import { TEXTS } from "../texts";
import { argumentsOf, callsOf, isApproval } from "./tool_calls";
import { ArgumentList, shown } from "./ArgumentList";
import { isSame } from "./arguments";
import { Calls } from "./Calls";
import { formOf, givenValues } from "./decided";
import { draftStorage, removeDraft } from "./drafts";
import { labelOf } from "./field_names";
import { visible } from "./visible_text";

export function Decisions({ turn }: { turn: Turn }) {
  const decisions = turn.decisions.value;
  const open = turn.run.value.forms.map((form) => form.form_id);
  useEffect(() => {
    // A form that was answered elsewhere needs no draft here.
    for (const { form_id } of decisions) if (!open.includes(form_id)) removeDraft(draftStorage(), form_id);
  }, [decisions]);
  if (decisions.length === 0) return null;
  return (
    <section class="decisions" aria-label={TEXTS.forms.decisions}>
      {decisions.map((decision, place) => (
        <DecisionCard key={place} turn={turn} decision={decision} />
      ))}
    </section>
  );
}

function DecisionCard({ turn, decision }: { turn: Turn; decision: Decision }) {
  const form = formOf(turn, decision.form_id);
  const isRefusal = decision.kind === "reject" || decision.kind === "cancel";
  return (
    <details class={isRefusal ? "decision refused" : "decision"}>
      <summary>
        <span class="decision-line">
          {isRefusal ? <CrossIcon /> : <CheckIcon />}
          <span>
            <strong>{verdict(decision)}</strong>
            {decision.reason && <bdi class="decision-reason">{TEXTS.forms.because(visible(decision.reason))}</bdi>}
            {form && <> <span class="soft">· <bdi>{visible(form.title)}</bdi></span></>}
            <DecisionTime at={decision.at} />
          </span>
        </span>
      </summary>
      <div class="decision-body">
        {form && isApproval(form) && <Calls form={form} />}
        <Given turn={turn} decision={decision} />
      </div>
    </details>
  );
}

function verdict({ kind, by, always }: Decision): string {
  const text = kind === "approve" && always ? TEXTS.forms.decided.always : TEXTS.forms.decided[kind];
  return by ? `${text}${TEXTS.forms.by(visible(by))}` : text;
}

/** The values of the fields, or the arguments that were changed, with their earlier values. */
function Given({ turn, decision }: { turn: Turn; decision: Decision }) {
  const form = formOf(turn, decision.form_id);
  const given = givenValues(decision, form);
  if (decision.kind === "values" && given.length === 0) return <p class="soft">{TEXTS.forms.asProposed}</p>;
  if (given.length === 0) return null;
  if (decision.kind !== "edit") {
    return <ArgumentList label={TEXTS.forms.decided.values} args={given.map(([name, value]) => [labelOf(name), value])} />;
  }
  const call = form && callsOf(form)[0];
  const before = new Map(call ? argumentsOf(call) : []);
  return (
    <ul class="changes">
      {given.filter(([name, value]) => !isSame(value, before.get(name))).map(([name, value]) => (
        <li key={name}>
          <bdi>{visible(name)}</bdi>:{" "}
          {before.has(name) && <><del><code><bdi>{shown(before.get(name))}</bdi></code></del> {TEXTS.forms.changedTo} </>}
          <ins><code><bdi>{shown(value)}</bdi></code></ins>
        </li>
      ))}
    </ul>
  );
}

function DecisionTime({ at }: { at: string }) {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return null;
  const isToday = time.toDateString() === new Date().toDateString();
  const text = isToday ? time.toLocaleTimeString([], { timeStyle: "short" }) : time.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  return <span class="soft"> · <time dateTime={at}>{text}</time></span>;
}
