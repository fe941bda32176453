// The arguments of a call in inputs. Approving sends the changed ones.

import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";

import type { ActionRequest } from "../events";
import { TEXTS } from "../texts";
import { argumentsOf } from "./tool_calls";
import { argumentText, changedArguments, isShownInPart } from "./arguments";
import { shown } from "./ArgumentList";
import { isSecret } from "./field_names";
import { FormPart } from "./FormPart";
import { LineInput } from "./LineInput";
import { focusFirstError, type Answering } from "./use_answer";
import type { DraftHandle } from "./use_draft";
import { visible } from "./visible_text";

const ONE_LINE = 75;

interface Props {
  call: ActionRequest;
  answering: Answering;
  handle: DraftHandle;
}

export function ArgumentsEditor({ call, answering, handle }: Props) {
  const check = useSignal<{ errors: Readonly<Record<string, string>>; problem: string | null; failed: number }>({
    errors: {},
    problem: null,
    failed: 0,
  });
  const id = useId();
  const { draft, update } = handle;
  const args = argumentsOf(call);
  const busy = answering.state !== "idle";
  const { errors, problem, failed } = check.value;
  useEffect(() => {
    if (failed > 0) focusFirstError(answering.card.current);
  }, [failed]);
  const change = (name: string, entry: string) => {
    const { [name]: _, ...others } = errors;
    check.value = { errors: others, problem: null, failed };
    update({ args: { ...draft.args, [name]: entry } });
  };
  const approve = () => {
    const outcome = changedArguments(args, draft.args);
    if (!outcome.ok) check.value = { errors: outcome.errors, problem: null, failed: failed + 1 };
    else if (Object.keys(outcome.changed).length === 0) check.value = { ...check.value, problem: TEXTS.forms.nothingChanged };
    else answering.send({ kind: "edit", values: outcome.changed });
  };
  const action = (
    <button type="button" class="button primary" disabled={busy} onClick={approve}>{TEXTS.forms.confirmEdit}</button>
  );
  return (
    <FormPart title={TEXTS.forms.editTitle} busy={busy} close={() => update({ part: null })} action={action}>
      <p class="form-text soft">{TEXTS.forms.editHint}</p>
      {args.map(([name, value], place) => (
        <ArgumentInput
          key={name}
          id={`${id}-${place}`}
          name={name}
          value={value}
          entry={draft.args[name] ?? argumentText(value)}
          error={errors[name] ?? null}
          change={(entry) => change(name, entry)}
        />
      ))}
      {problem && <p class="field-error" role="alert">{problem}</p>}
    </FormPart>
  );
}

interface InputProps {
  id: string;
  name: string;
  value: unknown;
  entry: string;
  error: string | null;
  change: (entry: string) => void;
}

function ArgumentInput({ id, name, value, entry, error, change }: InputProps) {
  const original = argumentText(value);
  const hints = [
    original === "" && value !== "" ? TEXTS.forms.keepsArgument : null,
    isShownInPart(value) ? TEXTS.forms.shownInPart : null,
  ].filter((hint) => hint !== null);
  const isChanged = entry !== original;
  const described = [hints.length > 0 && `${id}-hint`, isChanged && `${id}-was`, error && `${id}-error`]
    .filter(Boolean)
    .join(" ");
  const attributes = {
    id,
    class: typeof value === "string" ? "input" : "input mono",
    "aria-invalid": error !== null,
    "aria-describedby": described || undefined,
  };
  return (
    <div class="field">
      <label for={id}><bdi>{visible(name)}</bdi></label>
      {typeof value === "boolean" ? (
        <select {...attributes} value={entry} onChange={(event) => change(event.currentTarget.value)}>
          <option value="true">true</option>
          <option value="false">false</option>
        </select>
      ) : isOneLine(value, original) ? (
        <LineInput
          attributes={attributes}
          secret={isSecret(name)}
          mode={typeof value === "number" ? "decimal" : "text"}
          value={entry}
          change={change}
        />
      ) : (
        <textarea
          {...attributes}
          rows={3}
          dir="auto"
          autoComplete="off"
          spellcheck={false}
          value={entry}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
      {hints.length > 0 && <p id={`${id}-hint`} class="field-hint">{hints.join(" ")}</p>}
      {isChanged && (
        <p id={`${id}-was`} class="field-hint">
          {TEXTS.forms.was} <code class="argument-before"><bdi>{shown(value)}</bdi></code>
        </p>
      )}
      {error && <p id={`${id}-error`} class="field-error">{error}</p>}
    </div>
  );
}

function isOneLine(value: unknown, text: string): boolean {
  if (typeof value === "number") return true;
  return typeof value === "string" && text.length <= ONE_LINE && !text.includes("\n");
}
