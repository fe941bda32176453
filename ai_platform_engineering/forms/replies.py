"""How a person's message answers the forms that are open: it answers one of them, or all are shown again.

Only a `Resume` runs anything, and its values fit the form. Whatever else a message says, the forms stay open, with what
was typed in them and a sentence on what to do.
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
from ai_platform_engineering.forms.credentials import is_secret, quoted
from ai_platform_engineering.forms.decisions import answerable, decide, is_approval
from ai_platform_engineering.forms.filling import Filled, Refused, fill, propose
from ai_platform_engineering.forms.reading import (
    Lines,
    Partly,
    Reading,
    Whole,
    after_name,
    how_to_answer,
    read,
)

ASK_ELSEWHERE: Final = "Ask something else in a new conversation."


@dataclass(frozen=True, slots=True)
class Reply:
    """What a message says: its text, and the object behind `resume` if there is one.

    `to_conversation` is on for a text that names the conversation and not the task of the form. It may be a new
    question, so only a plain answer counts: lines that name fields, one of the offered values, a decision.
    """

    text: str = ""
    resume: Mapping[str, Any] | None = None
    to_conversation: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """The run goes on with the answer to `form`."""

    form: Form
    answer: Answer


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Nothing runs: these forms, all that are open, are shown again."""

    forms: tuple[Form, ...]


def understand(forms: Sequence[Form], reply: Reply) -> Resume | AskAgain:
    """What `reply` means to the open `forms`, of which there is at least one. Data wins over text."""
    resume = reply.resume
    if resume is None:
        return _by_text(forms, forms, reply.text, plainly=reply.to_conversation)
    form_id = resume.get("form_id")
    if form_id is None or form_id == "":
        form = forms[0] if len(forms) == 1 else _meant(forms, resume)
    else:
        form = next((form for form in forms if form.form_id == form_id), None)
        if form is None:
            sentence = f"That form was answered already. What is open now: {_titles(forms)}."
            return _told(forms, forms[0], sentence)
    if resume.keys().isdisjoint({"values", "decisions", "cancel"}) and reply.text.strip():
        return _by_text(forms, forms if form is None else [form], reply.text)
    if form is None:
        return _told(forms, forms[0], f"{_which(forms)}{_sent(resume)}")
    return _by_data(forms, form, resume)


def _by_data(forms: Sequence[Form], form: Form, resume: Mapping[str, Any]) -> Resume | AskAgain:
    decisions = resume.get("decisions")
    if isinstance(decisions, list) and any(decision != decisions[0] for decision in decisions):
        return _told(forms, form, "This form takes one decision, for everything in it.")
    answer = read_answer(resume)
    if answer is None:
        return _told(
            forms,
            form,
            "The answer was not understood: send `values` as an object, or `decisions` with one of type approve, edit "
            "(with `args` as an object) or reject, or `cancel`.",
        )
    if is_approval(form) and isinstance(answer, Approved) and answer.arguments and len(form.action_requests) > 1:
        return _told(forms, form, "Several actions cannot be changed at once: approve or reject them.")
    return _settled(forms, form, answer)


def _settled(forms: Sequence[Form], form: Form, answer: Answer) -> Resume | AskAgain:
    """`answer` in the terms of `form`, once its values fit."""
    if is_approval(form):
        match answer:
            case Submitted(values):
                decision = decide(form, values)
                return _again(forms, form, decision.form) if isinstance(decision, Refused) else Resume(form, decision)
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
    return Resume(form, Submitted(filled.values)) if isinstance(filled, Filled) else _again(forms, form, filled.form)


def _by_text(
    forms: Sequence[Form], candidates: Sequence[Form], text: str, *, plainly: bool = False
) -> Resume | AskAgain:
    if len(candidates) == 1:
        form = candidates[0]
        reading = read(form, text, plainly=plainly)
        # A text that begins with the form's name is meant for it.
        rest = None if isinstance(reading, Lines) else after_name(form, text)
        if rest is not None:
            return _applied(forms, form, read(form, rest), text)
        return _applied(forms, form, reading, text, plainly=plainly)
    named = [(form, rest) for form in candidates if (rest := after_name(form, text)) is not None]
    if len(named) == 1:
        form, rest = named[0]
        return _applied(forms, form, read(form, rest), rest)
    readings = [(form, reading) for form in candidates if (reading := read(form, text, plainly=plainly)) is not None]
    lines = [(form, reading) for form, reading in readings if isinstance(reading, Lines)]
    fitting = [(form, reading) for form, reading in readings if _fits(form, reading)]
    partly = [(form, reading) for form, reading in readings if isinstance(reading, Partly)]
    # Lines that name fields say more than a text that may stand for anything.
    most = lines or fitting or partly
    if len(most) == 1:
        return _applied(forms, *most[0], text)
    elsewhere = f" {ASK_ELSEWHERE}" if plainly else ""
    return _told(forms, candidates[0], f"{_which(candidates)}{elsewhere}{_wrote(candidates, text)}")


def _fits(form: Form, reading: Reading) -> bool:
    match reading:
        case Lines() | Partly():
            return False
        case Whole(values):
            return isinstance(fill(form, values), Filled)
        case _:
            return True


def _applied(
    forms: Sequence[Form], form: Form, reading: Reading | None, text: str, *, plainly: bool = False
) -> Resume | AskAgain:
    match reading:
        case None if plainly:
            return _told(forms, form, f"{how_to_answer(form, plainly=True)} {ASK_ELSEWHERE}{_wrote([form], text)}")
        case None:
            return _told(forms, form, f"{how_to_answer(form)}{_wrote([form], text)}")
        case Lines(values) | Whole(values):
            return _settled(forms, form, Submitted(values))
        case Partly(values, why):
            entered = _entered(answerable(form), values)
            return _again(forms, form, replace(entered, response=f"{why} {how_to_answer(form)}"))
        case _:
            return Resume(form, reading)


def _entered(form: Form, values: Mapping[str, Any]) -> Form:
    """`form` with `values` entered; of what is wrong, only what is wrong with these."""
    checked = fill(form, values)
    if isinstance(checked, Filled):
        form = replace(form, fields=tuple(replace(field, error=None) for field in form.fields))
        return propose(form, {name: checked.values.get(name, value) for name, value in values.items()})
    fields = tuple(field if field.field_name in values else replace(field, error=None) for field in checked.form.fields)
    return replace(checked.form, fields=fields)


def _meant(forms: Sequence[Form], resume: Mapping[str, Any]) -> Form | None:
    """The one form that has a field for each of the values."""
    answer = read_answer(resume)
    if not isinstance(answer, Submitted) or not answer.values:
        return None
    fitting = [form for form in forms if answer.values.keys() <= _field_names(form)]
    return fitting[0] if len(fitting) == 1 else None


def _field_names(form: Form) -> set[str]:
    return {field.field_name for field in answerable(form).fields}


def _told(forms: Sequence[Form], form: Form, sentence: str) -> AskAgain:
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
    """The values that were sent and have no form to be kept in."""
    values = resume.get("values")
    if not isinstance(values, Mapping):
        return ""
    shown = [f"{name}: {quoted(value)}" for name, value in values.items() if not is_secret(str(name))]
    return f" You sent {', '.join(shown)}." if shown else ""


def _wrote(forms: Sequence[Form], text: str) -> str:
    """What was written, unless it may be a credential."""
    secret = any(is_secret(name) for form in forms for name in _field_names(form))
    return "" if secret or not text.strip() else f" You wrote {quoted(text)}."
