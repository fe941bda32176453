// Forms that ask for the approval of tool calls: the calls, and the permission that can be given for later ones.

import type { ActionRequest, Form } from "../events";
import { SUPERVISOR } from "../events";
import { agentName } from "../chat/names";
import { TEXTS } from "../texts";

export type Effect = "read" | "write" | "destructive";

/** Whether a form asks for a decision about calls. Some agents ask for values and only show the calls. */
export function isApproval(form: Form): boolean {
  if (callsOf(form).length === 0) return false;
  const fields = form.fields ?? [];
  return fields.length === 0 || fields.some(({ field_name, field_type, field_values }) =>
    field_name === "decision" && field_type === "select" &&
    ["approve", "reject"].every((option) => field_values?.includes(option)),
  );
}

export function callsOf(form: Form): readonly ActionRequest[] {
  return form.action_requests ?? [];
}

export function toolOf(call: ActionRequest): string {
  return textOf(call["tool"]) || textOf(call.name) || TEXTS.forms.someTool;
}

export function callerOf(form: Form, call: ActionRequest): string {
  return agentName(textOf(call["agent"]) || form.agent || SUPERVISOR);
}

export function effectOf(call: ActionRequest): Effect | null {
  const effect = call["effect"];
  return effect === "read" || effect === "write" || effect === "destructive" ? effect : null;
}

/** The arguments of a call: those that identify its target first, then by name. On the wire they have no order. */
export function argumentsOf(call: ActionRequest): [name: string, value: unknown][] {
  const leading = isObject(call["remember"]) ? call["remember"] : {};
  const rank = (name: string) => (name in leading ? 0 : 1);
  return Object.entries(isObject(call.args) ? call.args : {}).sort(
    ([one], [other]) => rank(one) - rank(other) || (one < other ? -1 : 1),
  );
}

/** The exact permission that "approve for this conversation" gives; null where it is not offered. */
export function remembered(form: Form): string | null {
  const [call, ...others] = callsOf(form);
  if (!call || others.length > 0 || !isObject(call["remember"])) return null;
  const leading = Object.entries(call["remember"]);
  const given = leading.filter(([, value]) => value !== null).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const missing = leading.filter(([, value]) => value === null).map(([name]) => name);
  return TEXTS.forms.permission(callerOf(form, call), toolOf(call), given, missing, effectOf(call));
}

/** The sentences above a form. The error of a field and the description of a call are shown in their places. */
export function introductionOf(form: Form): string[] {
  const response = (form.fields ?? []).reduce(
    (text, field) => (field.error ? text.replace(field.error, () => "") : text),
    form.response ?? "",
  );
  const description = describesCall(form) ? "" : (form.description ?? "");
  const texts = [response, description].map((text) => text.trim()).filter((text) => text !== "");
  return [...new Set(texts)];
}

/** Whether the form is one of ours about a single call: its description says what the call shows (approvals/form.py). */
function describesCall(form: Form): boolean {
  const [call, ...others] = callsOf(form);
  return call !== undefined && others.length === 0 && effectOf(call) !== null;
}

/** Whether the form itself shows the sentence: as its introduction, or with its fields. */
export function isShownInForm(form: Form, sentence: string): boolean {
  const errors = (form.fields ?? []).flatMap((field) => (field.error ? [field.error] : []));
  return sentence === form.response || sentence === errors.join(" ");
}

/** What an agent says about a call beyond its tool, arguments and effect. */
export function remarkOf(form: Form, call: ActionRequest): string {
  const remark = (call.description ?? "").trim();
  return describesCall(form) || (form.description ?? "").includes(remark) ? "" : remark;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
