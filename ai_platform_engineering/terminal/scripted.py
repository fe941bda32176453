"""Answers to forms that were given on the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.decisions import is_approval
from ai_platform_engineering.text.form_words import arguments_of
from ai_platform_engineering.text.plain_text import one_line


class NoAnswerError(Exception):
    """What was given answers no form; the text says why."""


@dataclass(frozen=True, slots=True)
class Scripted:
    """An answer to the form `form_id`, or to the one that it fits. A rejection has a reason, if only an empty one."""

    values: Mapping[str, str]
    approve: bool = False
    reject: str | None = None
    form_id: str | None = None

    def form_of(self, forms: Sequence[Form]) -> Form:
        """The form among those open that is meant."""
        if not forms:
            raise NoAnswerError("The task waits for an answer, but not with a form; answer it with a message.")
        if self.form_id is not None:
            named = [form for form in forms if form.form_id == self.form_id]
            wrong = f"No form {self.form_id!r} is open; those open are {_listed(forms)}."
        elif len(forms) == 1:
            return forms[0]
        else:
            named = [form for form in forms if self._fits(form)]
            wrong = f"Several forms are open: {_listed(forms)}. Say with --form which one is answered."
        if len(named) != 1:
            raise NoAnswerError(wrong)
        return named[0]

    def answer_to(self, form: Form) -> Answer:
        """The answer. Its values are texts; the supervisor reads them as what the form declares and checks them."""
        if self.reject is not None:
            return Rejected(self.reject) if is_approval(form) else Dismissed(self.reject)
        if not (self.approve and is_approval(form)):
            return Submitted(dict(self.values))
        if not self.values:
            return Approved()
        if len(form.action_requests) != 1:
            raise NoAnswerError("Several actions wait in this form, so their arguments cannot be changed.")
        known = arguments_of(form.action_requests[0])
        return Approved({name: _argument(name, text, known) for name, text in self.values.items()})

    def _fits(self, form: Form) -> bool:
        if is_approval(form):
            return self.approve or self.reject is not None
        return bool(self.values) and set(self.values) <= {field.field_name for field in form.fields}


def _argument(name: str, text: str, known: Mapping[str, Any]) -> Any:
    """The value of an argument: a text where it is one now, JSON where it is something else."""
    if name not in known or isinstance(known[name], str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        example = json.dumps(known[name], default=str)
        raise NoAnswerError(f"--answer {name}={text}: {name} takes JSON, for example {example}.") from None


def _listed(forms: Sequence[Form]) -> str:
    return ", ".join(f"{form.form_id} ({one_line(form.title)})" for form in forms)
