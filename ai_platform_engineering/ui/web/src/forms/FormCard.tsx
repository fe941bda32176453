// An open form of a run: fields to fill in, or calls to approve.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId } from "preact/hooks";

import { agentName } from "../chat/names";
import type { Form } from "../events";
import type { Store, Turn } from "../store";
import { TEXTS } from "../texts";
import { Approval } from "./Approval";
import { introductionOf, isApproval, isShownInForm } from "./tool_calls";
import { withLabels } from "./field_names";
import type { Answering } from "./use_answer";
import { useAnswer } from "./use_answer";
import { useDraft } from "./use_draft";
import { ValuesForm } from "./ValuesForm";
import { visible } from "./visible_text";

interface Props {
  store: Store;
  turn: Turn;
  form: Form;
}

export function FormCard({ store, turn, form }: Props) {
  const answering = useAnswer(store, turn, form);
  const handle = useDraft(turn, form);
  const Part = isApproval(form) ? Approval : ValuesForm;
  return (
    <Card form={form} answering={answering}>
      <Part form={form} answering={answering} handle={handle} />
    </Card>
  );
}

function Card({ form, answering, children }: { form: Form; answering: Answering; children: ComponentChildren }) {
  const heading = useId();
  const announced = useSignal(false);
  const { card, state, problem } = answering;
  const kind = isApproval(form) ? "approval" : "input";
  useEffect(() => {
    // Screen readers announce changes of a status, not the text that it has from the start.
    announced.value = true;
    showFromTop(card.current);
  }, []);
  return (
    <section class="card form-card" aria-labelledby={heading} aria-busy={state !== "idle"} ref={card}>
      <p class="visually-hidden" role="status">{announced.value && TEXTS.forms.waits[kind]}</p>
      <p class="form-kind">
        <span class="badge wait">{TEXTS.forms.needed[kind]}</span>
        {form.agent && <span class="badge">{agentName(form.agent)}</span>}
      </p>
      <h3 id={heading} class="form-title"><bdi>{visible(form.title) || TEXTS.forms.untitled}</bdi></h3>
      {introductionOf(form).map((text) => (
        <p key={text} class="form-text" dir="auto">{visible(withLabels(text, form.fields ?? []))}</p>
      ))}
      {children}
      <p class="form-state soft" role="status">
        {state === "sending" && TEXTS.forms.sending}
        {state === "sent" && TEXTS.forms.sent}
      </p>
      {problem && !isShownInForm(form, problem) && <p class="problem" role="alert">{problem}</p>}
    </section>
  );
}

/** The chat shows its end. Of a form that is higher than the view, that would be the last fields. */
function showFromTop(card: HTMLElement | null): void {
  const view = card?.closest(".turns-scroll");
  if (card && view && card.offsetHeight > view.clientHeight) card.scrollIntoView({ block: "start" });
}
