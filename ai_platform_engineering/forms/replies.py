"""Interprets a message as the answer to one of the open forms. If it is none, all forms are shown again.

Only a `Resume` continues the run, and its values are valid. After any other message the forms stay open, with the
entered values and a sentence that says how to answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.answers import (
    Answer,
    Approved,
    Dismissed,
    Rejected,
    Submitted,
    read_answer,
)
from ai_platform_engineering.forms.decisions import answerable, decide, is_approval
from ai_platform_engineering.forms.field_names import is_secret, quoted
from ai_platform_engineering.forms.filling import FilledForm, InvalidForm, fill, propose
from ai_platform_engineering.forms.reading import (
    FieldLines,
    PartialLines,
    Reading,
    SingleValue,
    after_name,
    how_to_answer,
    read,
)

ASK_ELSEWHERE: Final = "Ask something else in a new conversation."


@dataclass(frozen=True, slots=True)
class FormReply:
    """A message: its text, and the JSON object of `resume` if it has one.

    `to_conversation`: the message was sent to the conversation, not to the task of the form. It may be a new question,
    so only an explicit answer counts: lines with field names, an option, or a decision.
    """

    text: str = ""
    resume: Mapping[str, Any] | None = None
    to_conversation: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """The run continues with the answer to `form`."""

    form: Form
    answer: Answer


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The run does not continue. All open forms are shown again."""

    forms: tuple[Form, ...]


def interpret(forms: Sequence[Form], reply: FormReply) -> Resume | AskAgain:
    """The meaning of `reply` for the open `forms` (at least one). Data wins over text."""
    resume = reply.resume
    if resume is None:
        return _by_text(forms, forms, reply.text, explicit_only=reply.to_conversation)
    form_id = resume.get("form_id")
    if form_id is None or form_id == "":
        form = forms[0] if len(forms) == 1 else _meant(forms, resume)
    else:
        form = next((form for form in forms if form.form_id == form_id), None)
        if form is None:
            sentence = f"That form was answered already. What is open now: {_titles(forms)}."
            return _with_response(forms, forms[0], sentence)
    if resume.keys().isdisjoint({"values", "decisions", "cancel"}) and reply.text.strip():
        return _by_text(forms, forms if form is None else [form], reply.text)
    if form is None:
        return _with_response(forms, forms[0], f"{_which(forms)}{_sent(resume)}")
    return _by_data(forms, form, resume)


def ask_later(forms: Sequence[Form], form: Form, answer: Answer, sentence: str) -> AskAgain:
    """Show the forms again after a valid answer to `form` that cannot be used now. The entered values are kept."""
    entered = _entered(form, answer.values) if isinstance(answer, Submitted) and not is_approval(form) else form
    return _again(forms, form, replace(entered, response=sentence))


def _by_data(forms: Sequence[Form], form: Form, resume: Mapping[str, Any]) -> Resume | AskAgain:
    decisions = resume.get("decisions")
    if isinstance(decisions, list) and any(decision != decisions[0] for decision in decisions):
        return _with_response(forms, form, "This form takes one decision, for everything in it.")
    answer = read_answer(resume)
    if answer is None:
        return _with_response(
            forms,
            form,
            "The answer was not understood: send `values` as an object, or `decisions` with one of type approve, edit "
            "(with `args` as an object) or reject, or `cancel`.",
        )
    if is_approval(form) and isinstance(answer, Approved) and answer.arguments and len(form.action_requests) > 1:
        return _with_response(forms, form, "Several actions cannot be changed at once: approve or reject them.")
    return _resolved(forms, form, answer)


def _resolved(forms: Sequence[Form], form: Form, answer: Answer) -> Resume | AskAgain:
    """The answer to `form` after validation, or the form with errors."""
    if is_approval(form):
        match answer:
            case Submitted(values):
                decision = decide(form, values)
                return (
                    _again(forms, form, decision.form) if isinstance(decision, InvalidForm) else Resume(form, decision)
                )
            case Dismissed(reason):
                return Resume(form, Rejected(reason))
            case _:
                return Resume(form, answer)
    match answer:
        case Submitted(values):
            filled = fill(form, values)
        case Approved(arguments):
            filled = fill(form, arguments or {})
        case Rejected(reason) | Dismissed(reason):
            return Resume(form, Dismissed(reason))
    return (
        Resume(form, Submitted(filled.values)) if isinstance(filled, FilledForm) else _again(forms, form, filled.form)
    )


def _by_text(
    forms: Sequence[Form], candidates: Sequence[Form], text: str, *, explicit_only: bool = False
) -> Resume | AskAgain:
    if len(candidates) == 1:
        form = candidates[0]
        reading = read(form, text, explicit_only=explicit_only)
        # A text that begins with the name of the form is an answer to it.
        rest = None if isinstance(reading, FieldLines) else after_name(form, text)
        if rest is not None:
            return _applied(forms, form, read(form, rest), text)
        return _applied(forms, form, reading, text, explicit_only=explicit_only)
    named = [(form, rest) for form in candidates if (rest := after_name(form, text)) is not None]
    if len(named) == 1:
        form, rest = named[0]
        return _applied(forms, form, read(form, rest), rest)
    readings = [
        (form, reading) for form in candidates if (reading := read(form, text, explicit_only=explicit_only)) is not None
    ]
    lines = [(form, reading) for form, reading in readings if isinstance(reading, FieldLines)]
    fitting = [(form, reading) for form, reading in readings if _fits(form, reading)]
    partly = [(form, reading) for form, reading in readings if isinstance(reading, PartialLines)]
    # Lines with field names are more specific than a bare text.
    best = lines or fitting or partly
    if len(best) == 1:
        return _applied(forms, *best[0], text)
    elsewhere = f" {ASK_ELSEWHERE}" if explicit_only else ""
    return _with_response(forms, candidates[0], f"{_which(candidates)}{elsewhere}{_wrote(candidates, text)}")


def _fits(form: Form, reading: Reading) -> bool:
    match reading:
        case FieldLines() | PartialLines():
            return False
        case SingleValue(values):
            return isinstance(fill(form, values), FilledForm)
        case _:
            return True


def _applied(
    forms: Sequence[Form], form: Form, reading: Reading | None, text: str, *, explicit_only: bool = False
) -> Resume | AskAgain:
    match reading:
        case None if explicit_only:
            return _with_response(
                forms, form, f"{how_to_answer(form, explicit_only=True)} {ASK_ELSEWHERE}{_wrote([form], text)}"
            )
        case None:
            return _with_response(forms, form, f"{how_to_answer(form)}{_wrote([form], text)}")
        case FieldLines(values) | SingleValue(values):
            return _resolved(forms, form, Submitted(values))
        case PartialLines(values, why):
            entered = _entered(answerable(form), values)
            return _again(forms, form, replace(entered, response=f"{why} {how_to_answer(form)}"))
        case _:
            return Resume(form, reading)


def _entered(form: Form, values: Mapping[str, Any]) -> Form:
    """`form` with `values` entered, and with errors for these values only."""
    checked = fill(form, values)
    if isinstance(checked, FilledForm):
        form = replace(form, fields=tuple(replace(field, error=None) for field in form.fields))
        return propose(form, {name: checked.values.get(name, value) for name, value in values.items()})
    fields = tuple(field if field.field_name in values else replace(field, error=None) for field in checked.form.fields)
    return replace(checked.form, fields=fields)


def _meant(forms: Sequence[Form], resume: Mapping[str, Any]) -> Form | None:
    """The only form that has a field for each of the values."""
    answer = read_answer(resume)
    if not isinstance(answer, Submitted) or not answer.values:
        return None
    fitting = [form for form in forms if answer.values.keys() <= _field_names(form)]
    return fitting[0] if len(fitting) == 1 else None


def _field_names(form: Form) -> set[str]:
    return {field.field_name for field in answerable(form).fields}


def _with_response(forms: Sequence[Form], form: Form, sentence: str) -> AskAgain:
    return _again(forms, form, replace(form, response=sentence))


def _again(forms: Sequence[Form], form: Form, changed: Form) -> AskAgain:
    return AskAgain(tuple(changed if shown is form else shown for shown in forms))


def _titles(forms: Sequence[Form]) -> str:
    return ", ".join(f"“{form.title}”" for form in forms)


def _which(forms: Sequence[Form]) -> str:
    names = [form.title for form in forms]
    if not all(names) or len({name.casefold() for name in names}) < len(names):
        names = [form.form_id for form in forms]
    starts = ", ".join(f"`{name}: ...`" for name in names)
    return (
        f"Several forms are open, so say which one you answer. Begin with its name ({starts}), or send its `form_id`."
    )


def _sent(resume: Mapping[str, Any]) -> str:
    """A sentence with the values that were sent and belong to no form."""
    values = resume.get("values")
    if not isinstance(values, Mapping):
        return ""
    shown = [f"{name}: {quoted(value)}" for name, value in values.items() if not is_secret(str(name))]
    return f" You sent {', '.join(shown)}." if shown else ""


def _wrote(forms: Sequence[Form], text: str) -> str:
    """A sentence with the text that was sent, unless it may be a credential."""
    secret = any(is_secret(name) for form in forms for name in _field_names(form))
    return "" if secret or not text.strip() else f" You wrote {quoted(text)}."
