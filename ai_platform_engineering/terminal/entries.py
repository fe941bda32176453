"""Parses the text that a person typed into a form field."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.filling import FilledForm, InvalidForm, fill
from ai_platform_engineering.text.plain_text import one_line

_SHORT: Final = {"y": "yes", "n": "no"}


@dataclass(frozen=True, slots=True)
class FieldEntry:
    """The parsed value; None when the field is left out."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class InvalidEntry:
    """The text is not a value of the field; `reason` says which values are."""

    reason: str


def parse_entry(field: FormField, text: str) -> FieldEntry | InvalidEntry:
    """Parse `text` as a value of `field`. An empty text gives the proposed value."""
    alone = Form("", "", (replace(field, error=None),))
    match fill(alone, {field.field_name: _read(field, text)} if text.strip() else {}):
        case FilledForm(values):
            return FieldEntry(values.get(field.field_name))
        case InvalidForm(form):
            errors = [one.error for one in form.fields if one.error]
            return InvalidEntry(one_line(errors[0] if errors else form.response))


def _read(field: FormField, text: str) -> Any:
    match field.field_type:
        case "multiline":
            return text
        case "select":
            return _option(field, text.strip())
        case "multiselect":
            whole = _option(field, text.strip())
            if whole in (field.field_values or ()):
                return [whole]
            return [_option(field, part.strip()) for part in text.split(",") if part.strip()]
        case "boolean":
            return _SHORT.get(text.strip().lower(), text.strip())
        case _:
            return text.strip()


def _option(field: FormField, text: str) -> str:
    """The option with this name, or else the option with this number."""
    options = field.field_values or ()
    for option in options:
        if option.lower() == text.lower():
            return option
    if text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) <= len(options):
        return options[int(text) - 1]
    return text
