// What a person decided about a form, with the form as the run showed it.

import type { Decision } from "../api";
import type { Form } from "../events";
import type { Turn } from "../store";
import { MASK, isSecret } from "./field_names";
import { isBlank } from "./validation";

/** The form that a decision is about, as it was shown last. */
export function formOf(turn: Turn, formId: string): Form | null {
  for (let place = turn.events.length - 1; place >= 0; place--) {
    const line = turn.events[place];
    if (line?.event !== "input_required") continue;
    const form = line.forms.find((shown) => shown.form_id === formId);
    if (form) return form;
  }
  return null;
}

/** The values that were given, in the order of the form's fields. Credentials are masked. */
export function givenValues(decision: Decision, form: Form | null): [name: string, value: unknown][] {
  const order = (form?.fields ?? []).map((field) => field.field_name);
  const place = (name: string) => (order.includes(name) ? order.indexOf(name) : order.length);
  return Object.entries(decision.values)
    .filter(([, value]) => !isBlank(value))
    .map(([name, value]): [string, unknown] => [name, isSecret(name) ? MASK : value])
    .sort(([one], [other]) => place(one) - place(other));
}
