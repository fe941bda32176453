// The part of a form in which a person gives the reason for a rejection or a cancellation.

import { useId } from "preact/hooks";

import { FormPart } from "./FormPart";
import type { DraftHandle } from "./use_draft";

interface Props {
  title: string;
  hint?: string;
  label: string;
  confirm: string;
  busy: boolean;
  handle: DraftHandle;
  send: (reason: string) => void;
}

export function ReasonPart({ title, hint, label, confirm, busy, handle, send }: Props) {
  const id = useId();
  const { draft, update } = handle;
  const action = (
    <button type="button" class="button danger" disabled={busy} onClick={() => send(draft.reason.trim())}>
      {confirm}
    </button>
  );
  return (
    <FormPart title={title} busy={busy} close={() => update({ part: null })} action={action}>
      {hint && <p class="form-text soft">{hint}</p>}
      <label for={id}>{label}</label>
      <textarea
        id={id}
        class="input"
        rows={2}
        dir="auto"
        value={draft.reason}
        onInput={(event) => update({ reason: event.currentTarget.value })}
      />
    </FormPart>
  );
}
