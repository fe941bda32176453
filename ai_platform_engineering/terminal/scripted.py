"""Answers to forms from command-line options."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.text.form_text import arguments_of
from ai_platform_engineering.text.plain_text import one_line


class NoAnswerError(Exception):
    """The options do not answer an open form; the message says why."""


@dataclass(frozen=True, slots=True)
class ScriptedAnswer:
    """The answer to the form `form_id`, or without an id to the open form that it fits.

    `reject` is the reason of a rejection, which may be empty; None means that the form is not rejected.
    """

    values: Mapping[str, str]
    approve: bool = False
    reject: str | None = None
    form_id: str | None = None

    def select_form(self, forms: Sequence[Form]) -> Form:
        """The open form that this answer is for."""
        if not forms:
            raise NoAnswerError("The task waits for an answer but has no form; answer it with a message.")
        if self.form_id is not None:
            named = [form for form in forms if form.form_id == self.form_id]
            wrong = f"No form {self.form_id!r} is open. Open forms: {_listed(forms)}."
        elif len(forms) == 1:
            return forms[0]
        else:
            named = [form for form in forms if self._fits(form)]
            wrong = f"Several forms are open: {_listed(forms)}. Choose one with --form."
        if len(named) != 1:
            raise NoAnswerError(wrong)
        return named[0]

    def answer_to(self, form: Form) -> Answer:
        """The answer. Its values are strings, which the supervisor parses and validates by the fields of the form."""
        if self.reject is not None:
            return Rejected(self.reject) if is_approval(form) else Dismissed(self.reject)
        if not (self.approve and is_approval(form)):
            return Submitted(dict(self.values))
        if not self.values:
            return Approved()
        if len(form.action_requests) != 1:
            raise NoAnswerError("This form has several actions, so their arguments cannot be changed.")
        known = arguments_of(form.action_requests[0])
        return Approved({name: _argument(name, text, known) for name, text in self.values.items()})

    def _fits(self, form: Form) -> bool:
        if is_approval(form):
            return self.approve or self.reject is not None
        return bool(self.values) and set(self.values) <= {field.field_name for field in form.fields}


def _argument(name: str, text: str, known: Mapping[str, Any]) -> Any:
    """The new value of an argument: a string if the current value is one, else parsed JSON."""
    if name not in known or isinstance(known[name], str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        example = json.dumps(known[name], default=str)
        raise NoAnswerError(f"--answer {name}={text}: {name} takes JSON, for example {example}.") from None


def _listed(forms: Sequence[Form]) -> str:
    return ", ".join(f"{form.form_id} ({one_line(form.title)})" for form in forms)
