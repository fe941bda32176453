"""Parses a text as the answer to one form: a decision, `name: value` lines, or the value of the only open field."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected
from ai_platform_engineering.forms.decisions import answerable, is_approval
from ai_platform_engineering.forms.field_names import is_secret, normalized_name, quoted
from ai_platform_engineering.forms.filling import is_open
from ai_platform_engineering.forms.validation import InvalidValue, expected, is_blank, validated

_CANCEL: Final = frozenset({"cancel", "never mind", "nevermind", "stop", "abort"})
_GO_AHEAD: Final = frozenset({"approve", "approved", "yes", "ok", "okay", "go ahead"})
_ALWAYS: Final = frozenset({"approve always", "always approve", "always"})
_REJECT: Final = frozenset({"no", "reject", "rejected", "deny", "denied"})
_REJECTED: Final = re.compile(
    rf"(?:{'|'.join(_REJECT)})(?:\s*[:,]|\s+[-–—]\s|\s+(?=because\s))\s*(?:because\s)?\s*(?P<reason>.+)",
    re.IGNORECASE | re.DOTALL,
)
# Without the question mark: "ok?" is not a decision.
_PUNCTUATION: Final = " \t\r\n.,;:!'\"`*“”"


@dataclass(frozen=True, slots=True)
class FieldLines:
    """Every line has the name of a field and its value."""

    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SingleValue:
    """The text is the value of the only open field. Without values, it accepts the proposed values."""

    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PartialLines:
    """Only some lines have the name of a field; `why` says what is wrong with the others."""

    values: dict[str, Any]
    why: str


Reading = Answer | FieldLines | SingleValue | PartialLines


def read(form: Form, text: str, *, explicit_only: bool = False) -> Reading | None:
    """The meaning of `text` as an answer to `form`, or None if it has none. Values are not validated.

    With `explicit_only`, a bare text is a value only if it is one of the field's options.
    """
    lines = _lines(answerable(form).fields, text)
    if is_approval(form):
        return _decision(text) or lines
    field = open_field(form)
    if field is not None and _is_choice(field, text):
        return SingleValue({field.field_name: text.strip()})
    word = _word(text)
    if word in _CANCEL:
        return Dismissed()
    if word in _GO_AHEAD and _is_ready(form):
        return SingleValue({})
    if isinstance(lines, PartialLines) and len(form.fields) == 1:
        lines = None
    if lines is None and field is not None and text.strip() and not explicit_only:
        return SingleValue({field.field_name: text if field.field_type == "multiline" else text.strip()})
    return lines


def open_field(form: Form) -> FormField | None:
    """The field that a bare text fills in: the only field, or the only one that still needs a value."""
    candidates = form.fields if len(form.fields) == 1 else [field for field in form.fields if is_open(field)]
    return candidates[0] if len(candidates) == 1 else None


def after_name(form: Form, text: str) -> str | None:
    """The rest of a text that begins with the form's title or id and a colon."""
    for name in (form.title, form.form_id):
        head = text.lstrip()[: len(name) + 1]
        if name.strip() and head.endswith(":") and head[:-1].casefold() == name.casefold():
            return text.lstrip()[len(head) :].lstrip(" \t").removeprefix("\n")
    return None


def how_to_answer(form: Form, *, explicit_only: bool = False) -> str:
    """One sentence for a person who can only send text. With `explicit_only` it asks for the name of the field too."""
    if is_approval(form):
        always = ", `approve always`" if any(field.field_name == "remember" for field in form.fields) else ""
        return f"Reply with `approve`{always} or `reject: <reason>`."
    field = open_field(form)
    if field is not None and explicit_only:
        return f"A form is open: reply with `{field.field_name}: ...` ({expected(field)}), or with `cancel`."
    if field is not None:
        return f"Reply with a value for `{field.field_name}` ({expected(field)}), or with `cancel`."
    missing = [f"`{field.field_name}: ...`" for field in form.fields if is_open(field)]
    if missing:
        return f"Reply with one line for each value ({', '.join(missing)}), or with `cancel`."
    change = f", with lines like `{form.fields[0].field_name}: ...` to change them" if form.fields else ""
    return f"Reply with `ok` to go on with the form as it is{change}, or with `cancel`."


def _word(text: str) -> str:
    return " ".join(text.strip(_PUNCTUATION).casefold().split())


def _decision(text: str) -> Approved | Rejected | None:
    word = _word(text)
    if word in _ALWAYS:
        return Approved(remember=True)
    if word in _GO_AHEAD:
        return Approved()
    if word in _REJECT or word in _CANCEL:
        return Rejected()
    rejected = _REJECTED.fullmatch(text.strip())
    return Rejected(rejected["reason"].strip()) if rejected else None


def _is_choice(field: FormField, text: str) -> bool:
    """Whether `text` is one of the options of `field`. Options win over commands: `stop` may be an option."""
    few = field.field_type == "boolean" or (field.field_type in ("select", "multiselect") and field.field_values)
    return bool(few) and bool(text.strip()) and not isinstance(validated(field, text.strip()), InvalidValue)


def _is_ready(form: Form) -> bool:
    """Whether `ok` can accept the form: no value is missing, and a single field has a value."""
    if len(form.fields) == 1 and is_blank(form.fields[0].value) and is_blank(form.fields[0].default_value):
        return False
    return not any(is_open(field) for field in form.fields)


def _lines(fields: Sequence[FormField], text: str) -> FieldLines | PartialLines | None:
    entries: list[tuple[FormField, list[str]]] = []
    problems: list[str] = []
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        field = _named(fields, name) if colon else None
        if field is not None:
            entries.append((field, [value.strip()]))
        elif entries and entries[-1][0].field_type == "multiline":
            entries[-1][1].append(line.rstrip())
        elif line.strip():
            problems.append(f"No field is named in {_shown(fields, line)}.")
    if not entries:
        return None
    values: dict[str, Any] = {}
    for place, (field, written) in enumerate(entries, start=1):
        value = "\n".join(written).strip("\n")
        if field.field_name in values:
            problems.append(f"`{field.field_name}` is there twice, also with {_shown(fields, value)}.")
            continue
        values[field.field_name] = value
        if place < len(entries) and any(map(str.strip, written[1:])):
            problems.append(f"Give `{field.field_name}` last: it has several lines.")
    return PartialLines(values, " ".join(problems)) if problems else FieldLines(values)


def _named(fields: Sequence[FormField], name: str) -> FormField | None:
    exact = [field for field in fields if field.field_name == name.strip()]
    close = [field for field in fields if normalized_name(field.field_name) == normalized_name(name)]
    candidates = exact[:1] or close
    return candidates[0] if len(candidates) == 1 and normalized_name(name) else None


def _shown(fields: Sequence[FormField], text: str) -> str:
    # A line in the wrong place may contain the value of a credential field.
    return "one of the lines" if any(is_secret(field.field_name) for field in fields) else quoted(text)
