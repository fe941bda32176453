// One field of a form: its label, the input for its type, hints, and the error.

import type { ComponentChildren } from "preact";

import type { FormField } from "../events";
import { TEXTS } from "../texts";
import { ChoiceList } from "./ChoiceList";
import { hasHiddenProposal, hasValidProposal, initialEntry, isChoiceOfMany, type Entry } from "./entries";
import { isSecret, labelOf } from "./field_names";
import { LineInput } from "./LineInput";
import { expected, optionsOf } from "./validation";
import { visible } from "./visible_text";

/** With more options than this, a select is a list with a filter. */
const MAX_MENU_OPTIONS = 20;

export interface FieldProps {
  id: string;
  field: FormField;
  entry: Entry;
  error: string | null;
  change: (entry: Entry) => void;
}

export function Field(props: FieldProps) {
  const { id, field, entry, change } = props;
  const options = optionsOf(field);
  const text = typeof entry === "string" ? entry : "";
  if (isChoiceOfMany(field)) {
    const chosen = typeof entry === "string" ? [] : entry;
    return (
      <Group {...props}>
        <ChoiceList id={id} label={label(field)} options={options} chosen={chosen} multiple change={change} />
      </Group>
    );
  }
  if (field.field_type === "boolean") return <Group {...props}><YesNo {...props} /></Group>;
  if (field.field_type === "select" && options.length > MAX_MENU_OPTIONS) {
    return (
      <Group {...props}>
        <ChoiceList
          id={id}
          label={label(field)}
          options={options}
          chosen={text === "" ? [] : [text]}
          multiple={false}
          change={([option]) => change(option ?? "")}
        />
      </Group>
    );
  }
  return (
    <div class="field">
      <label for={id}><Label field={field} /></label>
      {field.field_type === "select" && options.length > 0 ? (
        <select {...described(props)} class="input" value={text} onChange={(event) => change(event.currentTarget.value)}>
          <option value="">{TEXTS.forms.choose}</option>
          {options.map((option) => <option key={option} value={option}>{visible(option)}</option>)}
        </select>
      ) : (
        <TextInput {...props} />
      )}
      <Notes {...props} />
    </div>
  );
}

function TextInput(props: FieldProps) {
  const { field, entry, change } = props;
  const text = typeof entry === "string" ? entry : "";
  const attributes = { ...described(props), class: "input" };
  const secret = isSecret(field.field_name);
  if (!hasSeveralLines(field)) {
    const mode = INPUT_MODES[field.field_type ?? "text"] ?? "text";
    return <LineInput attributes={attributes} secret={secret} mode={mode} value={text} change={change} />;
  }
  return (
    <textarea
      {...attributes}
      rows={3}
      dir="auto"
      autoComplete="off"
      spellcheck={field.field_type === "multiline" && !secret}
      value={text}
      onInput={(event) => change(event.currentTarget.value)}
    />
  );
}

// Text inputs for all types: those of the browser drop text that they do not understand.
const INPUT_MODES: Readonly<Record<string, "decimal" | "url" | "email">> = { number: "decimal", url: "url", email: "email" };

function hasSeveralLines(field: FormField): boolean {
  const initial = initialEntry(field);
  return (
    field.field_type === "multiline" ||
    field.field_type === "multiselect" ||
    (typeof initial === "string" && initial.includes("\n"))
  );
}

function YesNo({ id, field, entry, change }: FieldProps) {
  const choices: [entry: string, label: string][] = [["yes", TEXTS.forms.yes], ["no", TEXTS.forms.no]];
  if (field.required === false && !hasValidProposal(field)) choices.push(["", TEXTS.forms.noAnswer]);
  return (
    <div class="choices row">
      {choices.map(([value, text]) => (
        <label key={value} class="choice">
          <input type="radio" name={id} checked={entry === value} onChange={() => change(value)} /> {text}
        </label>
      ))}
    </div>
  );
}

/** A field with several inputs. */
function Group({ children, ...props }: FieldProps & { children: ComponentChildren }) {
  const { "aria-describedby": describedBy } = described(props);
  return (
    <fieldset class={props.error ? "field field-group invalid" : "field field-group"} aria-describedby={describedBy}>
      <legend><Label field={props.field} /></legend>
      {children}
      <Notes {...props} />
    </fieldset>
  );
}

function Label({ field }: { field: FormField }) {
  return (
    <>
      <bdi>{label(field)}</bdi>{" "}
      <span class={field.required === false ? "soft field-note" : "field-note required"}>
        {field.required === false ? `(${TEXTS.forms.optional})` : `(${TEXTS.forms.isRequired})`}
      </span>
    </>
  );
}

function Notes({ id, field, error }: FieldProps) {
  const hints = hintsOf(field);
  return (
    <>
      {hints.length > 0 && <p id={`${id}-hint`} class="field-hint" dir="auto">{hints.join(" ")}</p>}
      {error && <p id={`${id}-error`} class="field-error" dir="auto">{visible(error)}</p>}
    </>
  );
}

function described({ id, field, error }: FieldProps) {
  const notes = [hintsOf(field).length > 0 && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ");
  return {
    id,
    "aria-describedby": notes || undefined,
    "aria-invalid": error !== null,
    "aria-required": field.required !== false,
  };
}

function label(field: FormField): string {
  return visible(labelOf(field.field_name));
}

function hintsOf(field: FormField): string[] {
  const isChoice = field.field_type === "boolean" || optionsOf(field).length > 0;
  const takes = expected(field);
  return [
    sentence(visible(field.field_description ?? "")),
    field.field_type === "multiselect" && !isChoice ? TEXTS.forms.linesHint : "",
    isChoice || field.field_type === "multiselect" || takes === TEXTS.forms.expected.text ? "" : TEXTS.forms.takesHint(visible(takes)),
    proposalHint(field),
    isSecret(field.field_name) ? TEXTS.forms.secretHint : "",
  ].filter((hint) => hint !== "");
}

function proposalHint(field: FormField): string {
  if (hasHiddenProposal(field)) return TEXTS.forms.keepsProposal;
  const isOptional = field.required === false && field.field_type !== "boolean" && !isChoiceOfMany(field);
  return isOptional && hasValidProposal(field) ? TEXTS.forms.emptyMeansProposal : "";
}

function sentence(text: string): string {
  const trimmed = text.trim();
  return trimmed === "" || /[.!?:]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
