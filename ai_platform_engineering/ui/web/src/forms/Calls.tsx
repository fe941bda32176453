// Tool calls that wait for a person: agent, tool, effect, and every argument in full.

import type { ActionRequest, Form } from "../events";
import { TEXTS } from "../texts";
import { argumentsOf, callerOf, callsOf, effectOf, remarkOf, toolOf, type Effect } from "./tool_calls";
import { ArgumentList } from "./ArgumentList";
import { visible } from "./visible_text";

const EFFECT_CLASSES: Readonly<Record<Effect, string>> = {
  read: "badge good",
  write: "badge wait",
  destructive: "badge bad",
};

export function Calls({ form }: { form: Form }) {
  const calls = callsOf(form);
  return (
    <>
      {calls.length > 1 && <p class="form-text">{TEXTS.forms.severalCalls(calls.length)}</p>}
      {calls.map((call, place) => (
        <Call key={place} form={form} call={call} />
      ))}
    </>
  );
}

function Call({ form, call }: { form: Form; call: ActionRequest }) {
  const effect = effectOf(call);
  const remark = remarkOf(form, call);
  const args = argumentsOf(call);
  return (
    <div class="form-call">
      <p class="form-call-line">
        <span>
          <bdi>{visible(callerOf(form, call))}</bdi> {TEXTS.forms.wants}{" "}
          <code class="tool-name"><bdi>{visible(toolOf(call))}</bdi></code>
        </span>
        {effect !== null && <span class={EFFECT_CLASSES[effect]}>{TEXTS.forms.effects[effect]}</span>}
      </p>
      {remark && <p class="form-text" dir="auto">{visible(remark)}</p>}
      {args.length === 0 ? (
        <p class="soft">{TEXTS.forms.noArguments}</p>
      ) : (
        <ArgumentList label={TEXTS.forms.argumentsOf(visible(toolOf(call)))} args={args} />
      )}
    </div>
  );
}
