"""What a person types into a field, as a value of the form, or why it cannot be one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.filling import Filled, Refused, fill
from ai_platform_engineering.text.plain_text import one_line

_SHORT: Final = {"y": "yes", "n": "no"}


@dataclass(frozen=True, slots=True)
class Entry:
    """What the field gets; nothing where it is left out."""

    value: Any = None


@dataclass(frozen=True, slots=True)
class Wrong:
    """Not a value of the field; `reason` says what would be."""

    reason: str


def entered(field: FormField, text: str) -> Entry | Wrong:
    """`text` as the value of `field`. Without a text it is what the field proposes."""
    alone = Form("", "", (replace(field, error=None),))
    match fill(alone, {field.field_name: _read(field, text)} if text.strip() else {}):
        case Filled(values):
            return Entry(values.get(field.field_name))
        case Refused(form):
            errors = [one.error for one in form.fields if one.error]
            return Wrong(one_line(errors[0] if errors else form.response))


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
    """The option with this name or, where no option is called so, with this number."""
    options = field.field_values or ()
    for option in options:
        if option.lower() == text.lower():
            return option
    if text.isascii() and text.isdigit() and len(text) < 6 and 0 < int(text) <= len(options):
        return options[int(text) - 1]
    return text
