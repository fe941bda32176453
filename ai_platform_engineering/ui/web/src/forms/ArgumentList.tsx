// Names and values as a person must be able to read them: nothing is left out, and nothing in them is interpreted.

import { useSignal } from "@preact/signals";

import { TEXTS } from "../texts";
import { isShownInPart } from "./arguments";
import { visible } from "./visible_text";

const LONG_TEXT = 800;
const MANY_LINES = 12;

interface Props {
  label: string;
  args: readonly (readonly [name: string, value: unknown])[];
}

export function ArgumentList({ label, args }: Props) {
  return (
    <dl class="arguments" aria-label={label}>
      {args.map(([name, value]) => (
        <div key={name} class="argument">
          <dt><bdi>{visible(name)}</bdi></dt>
          <dd>
            <ArgumentValue name={name} value={value} />
            {isShownInPart(value) && <p class="field-hint">{TEXTS.forms.partHint}</p>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function ArgumentValue({ name, value }: { name: string; value: unknown }) {
  const open = useSignal(false);
  const text = shown(value);
  const isLong = text.length > LONG_TEXT || text.split("\n").length > MANY_LINES;
  if (!isLong) return <pre class="argument-value" dir="auto">{text}</pre>;
  return (
    <>
      <pre
        class={open.value ? "argument-value" : "argument-value limited"}
        dir="auto"
        tabIndex={0}
        role="region"
        aria-label={visible(name)}
      >
        {text}
      </pre>
      <button
        type="button"
        class="button plain small"
        aria-expanded={open.value}
        onClick={() => (open.value = !open.value)}
      >
        {open.value ? TEXTS.forms.showLess : TEXTS.forms.showAll}
      </button>
    </>
  );
}

/** A text of several lines as it is; other values as JSON, so that a text differs from a number or an empty value. */
export function shown(value: unknown): string {
  if (typeof value === "string") return visible(value.includes("\n") ? value : JSON.stringify(value));
  return visible(JSON.stringify(value, null, 2));
}
