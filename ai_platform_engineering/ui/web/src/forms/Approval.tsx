// The calls that wait for approval, and the decision: approve, approve for the conversation, edit, reject. Only buttons
// decide; the Enter key in a text field does not.

import { useSignal } from "@preact/signals";

import type { Form } from "../events";
import { TEXTS } from "../texts";
import { argumentsOf, callsOf, remembered } from "./tool_calls";
import { ArgumentsEditor } from "./ArgumentsEditor";
import { Calls } from "./Calls";
import { FormPart } from "./FormPart";
import { ReasonPart } from "./ReasonPart";
import type { Answering } from "./use_answer";
import type { DraftHandle } from "./use_draft";
import { visible } from "./visible_text";

interface Props {
  form: Form;
  answering: Answering;
  handle: DraftHandle;
}

export function Approval({ form, answering, handle }: Props) {
  const always = useSignal(false);
  const { draft, update } = handle;
  const { send } = answering;
  const busy = answering.state !== "idle";
  const [call, ...others] = callsOf(form);
  const permission = remembered(form);
  const isEditable = call !== undefined && others.length === 0 && argumentsOf(call).length > 0;
  const toggle = (part: "edit" | "reject" | "always") => {
    const isOpen = part === "always" ? always.value : draft.part === part;
    always.value = part === "always" && !isOpen;
    update({ part: part === "always" || isOpen ? null : part });
  };
  return (
    <>
      <Calls form={form} />
      <div class="form-buttons">
        <button
          type="button"
          class="button primary"
          // Changed arguments and a reason are not part of this decision.
          disabled={busy || draft.part !== null}
          onClick={() => send({ kind: "approve", always: false })}
        >
          {TEXTS.forms.approve}
        </button>
        {permission !== null && (
          <PartButton text={TEXTS.forms.always} open={always.value} busy={busy} toggle={() => toggle("always")} />
        )}
        {isEditable && (
          <PartButton text={TEXTS.forms.edit} open={draft.part === "edit"} busy={busy} toggle={() => toggle("edit")} />
        )}
        <PartButton text={TEXTS.forms.reject} open={draft.part === "reject"} busy={busy} toggle={() => toggle("reject")} />
      </div>
      {always.value && permission !== null && (
        <FormPart
          title={TEXTS.forms.alwaysTitle}
          busy={busy}
          close={() => (always.value = false)}
          action={
            <button type="button" class="button primary" disabled={busy} onClick={() => send({ kind: "approve", always: true })}>
              {TEXTS.forms.confirmAlways}
            </button>
          }
        >
          <p class="form-text" dir="auto">{visible(permission)}</p>
        </FormPart>
      )}
      {draft.part === "edit" && isEditable && (
        <ArgumentsEditor call={call} answering={answering} handle={handle} />
      )}
      {draft.part === "reject" && (
        <ReasonPart
          title={TEXTS.forms.rejectTitle}
          label={TEXTS.forms.rejectReason}
          confirm={TEXTS.forms.confirmReject}
          busy={busy}
          handle={handle}
          send={(reason) => send({ kind: "reject", reason })}
        />
      )}
    </>
  );
}

interface PartButtonProps {
  text: string;
  open: boolean;
  busy: boolean;
  toggle: () => void;
}

function PartButton({ text, open, busy, toggle }: PartButtonProps) {
  return (
    <button type="button" class="button" disabled={busy} aria-expanded={open} onClick={toggle}>
      {text}
    </button>
  );
}
