// The fields of a form, and the ways to answer it: submit, or cancel with a reason.

import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";

import type { Form } from "../events";
import { TEXTS } from "../texts";
import { Calls } from "./Calls";
import { fieldsOf, fillIn, initialEntry, type Entry } from "./entries";
import { Field } from "./Field";
import { withLabels } from "./field_names";
import { ReasonPart } from "./ReasonPart";
import { focusFirstError, type Answering } from "./use_answer";
import type { DraftHandle } from "./use_draft";

interface Props {
  form: Form;
  answering: Answering;
  handle: DraftHandle;
}

interface Check {
  /** The sentences of the page by field. */
  errors: Readonly<Record<string, string>>;
  /** The fields that were changed since the form was shown or sent. Their earlier errors are obsolete. */
  changed: ReadonlySet<string>;
  /** Counts the attempts that failed. */
  failed: number;
}

const UNCHECKED: Check = { errors: {}, changed: new Set(), failed: 0 };

export function ValuesForm({ form, answering, handle }: Props) {
  const check = useSignal<Check>(UNCHECKED);
  const id = useId();
  const { draft, update } = handle;
  const fields = fieldsOf(form);
  const busy = answering.state !== "idle";
  const { errors, changed, failed } = check.value;
  useEffect(() => {
    if (failed > 0) focusFirstError(answering.card.current);
  }, [failed]);
  const change = (name: string, entry: Entry) => {
    const { [name]: _, ...others } = check.peek().errors;
    check.value = { ...check.peek(), errors: others, changed: new Set(check.peek().changed).add(name) };
    update({ fields: { ...draft.fields, [name]: entry } });
  };
  const submit = () => {
    if (busy) return;
    const outcome = fillIn(form, draft.fields);
    check.value = { ...UNCHECKED, errors: outcome.ok ? {} : outcome.errors, failed: failed + (outcome.ok ? 0 : 1) };
    if (outcome.ok) answering.send({ kind: "values", values: outcome.values });
  };
  const count = Object.keys(errors).length;
  return (
    <>
      <Calls form={form} />
      <form
        class="form-fields"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        {fields.length === 0 && <p class="soft">{TEXTS.forms.nothingToFillIn}</p>}
        {fields.map((field, place) => {
          const name = field.field_name;
          const earlier = busy || changed.has(name) || !field.error ? null : withLabels(field.error, fields);
          return (
            <Field
              key={name}
              id={`${id}-${place}`}
              field={field}
              entry={draft.fields[name] ?? initialEntry(field)}
              error={errors[name] ?? earlier}
              change={(entry) => change(name, entry)}
            />
          );
        })}
        {count > 1 && <p class="field-error" role="status">{TEXTS.forms.errors(count)}</p>}
        <div class="form-buttons">
          <button class="button primary" disabled={busy}>{fields.length > 0 ? TEXTS.forms.submit : TEXTS.forms.send}</button>
          <button
            type="button"
            class="button"
            disabled={busy}
            aria-expanded={draft.part === "reject"}
            onClick={() => update({ part: draft.part === "reject" ? null : "reject" })}
          >
            {TEXTS.forms.cancel}
          </button>
        </div>
      </form>
      {draft.part === "reject" && (
        <ReasonPart
          title={TEXTS.forms.cancelTitle}
          hint={TEXTS.forms.cancelHint}
          label={TEXTS.forms.cancelReason}
          confirm={TEXTS.forms.confirmCancel}
          busy={busy}
          handle={handle}
          send={(reason) => answering.send(reason ? { kind: "cancel", reason } : { kind: "cancel" })}
        />
      )}
    </>
  );
}
