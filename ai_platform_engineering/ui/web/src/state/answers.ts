// The answer to a form as JSON for the supervisor, and as a decision to show.

import type { Decision } from "../api";
import type { Form } from "../events";
import type { FormAnswer } from "../store";
import { TEXTS } from "../texts";

/** The data part that resumes the task of the form. */
export function resumeData(formId: string, answer: FormAnswer): Record<string, unknown> {
  return { resume: { ...(formId ? { form_id: formId } : {}), ...answerData(answer) } };
}

function answerData(answer: FormAnswer): Record<string, unknown> {
  switch (answer.kind) {
    case "values":
      return { values: answer.values };
    case "approve":
      return { decisions: [{ type: "approve", ...(answer.always ? { remember: true } : {}) }] };
    case "edit":
      return { decisions: [{ type: "edit", args: answer.values }] };
    case "reject":
      return { decisions: [{ type: "reject", message: answer.reason }] };
    case "cancel":
      return { cancel: true, message: answer.reason ?? "" };
  }
}

export function decisionOf(formId: string, answer: FormAnswer, at: Date, by: string | null): Decision {
  return {
    form_id: formId,
    at: at.toISOString(),
    by,
    kind: answer.kind,
    values: "values" in answer ? answer.values : {},
    reason: ("reason" in answer && answer.reason) || null,
    always: answer.kind === "approve" && answer.always,
  };
}

/** Why the supervisor shows `form` again after an answer. */
export function complaintOf(form: Form): string {
  const errors = (form.fields ?? []).flatMap((field) => (field.error ? [field.error] : []));
  return form.response || errors.join(" ") || TEXTS.chat.answerRejected;
}
