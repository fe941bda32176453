"""Values of a field on their way through Slack: as text in an input, as the position of an option, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ai_platform_engineering.events import FormField
from ai_platform_engineering.forms.arguments import same_value
from ai_platform_engineering.forms.credentials import is_secret
from ai_platform_engineering.forms.fitting import Misfit, fitted, is_blank
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import INITIAL_LENGTH
from ai_platform_engineering.text.plain_text import clean

YES: Final = "yes"
NO: Final = "no"


def proposed(field: FormField) -> Any:
    """What the field holds when nothing is entered: what was entered before, right or wrong, or a default that fits."""
    if not is_blank(field.value):
        return field.value
    default = field.default_value
    return None if is_blank(default) or isinstance(fitted(field, default), Misfit) else default


def is_kept(field: FormField) -> bool:
    """Whether the field may be left empty although it is required: it has a value that fits."""
    value = proposed(field)
    return value is not None and value != [] and not isinstance(fitted(field, value), Misfit)


def choices(field: FormField) -> dict[str, str]:
    """The options of a field, each once, by what Slack is given for them: their position."""
    first: dict[str, int] = {}
    for position, option in enumerate(field.field_values or ()):
        first.setdefault(option, position)
    return {str(position): option for option, position in first.items() if not is_blank(option)}


def chosen(field: FormField) -> list[str]:
    """The choices that are made when the field is shown."""
    value = fitted(field, proposed(field))
    if isinstance(value, Misfit) or is_secret(field.field_name):
        return []
    if field.field_type == "boolean":
        return [YES if value else NO]
    options = value if isinstance(value, list) else [value]
    return [position for position, option in choices(field).items() if option in options]


def text_of(field: FormField) -> str | None:
    """What is proposed, as text that can be changed. Nothing where it must not be seen, or would come back as another
    value."""
    value = proposed(field)
    if value is None or is_secret(field.field_name):
        return None
    text = _written(value)
    if not can_be_shown(text):
        return None
    meant = fitted(field, value)
    return text if isinstance(meant, Misfit) or same_value(fitted(field, typed(field, text)), meant) else None


def can_be_shown(text: str) -> bool:
    """Whether an input can hold `text` unchanged."""
    return bool(text.strip()) and len(text) <= INITIAL_LENGTH and clean(text) == text


def typed(field: FormField, text: str) -> Any:
    """What was typed into an input, as a value to be checked."""
    match field.field_type:
        case "multiselect":
            lines = [line.strip() for line in text.split("\n") if line.strip()]
            return lines if len(lines) > 1 else "".join(lines)
        case "url" | "email":
            return text.strip()
        case _:
            return text


def entered(field: FormField, state: Mapping[str, Any]) -> Any:
    """The value in the state of an element, as Slack sends it; None where nothing was entered."""
    if "selected_options" in state:
        options = [_option(field, option) for option in state["selected_options"] or ()]
        # Taking away all that was chosen says something, never having chosen does not.
        return options if options or chosen(field) else None
    if "selected_option" in state:
        return None if state["selected_option"] is None else _option(field, state["selected_option"])
    text = state.get("value")
    return typed(field, text) if isinstance(text, str) else None


def _option(field: FormField, option: Any) -> Any:
    token = option.get("value") if isinstance(option, Mapping) else option
    if field.field_type == "boolean":
        return {YES: True, NO: False}.get(token, token) if isinstance(token, str) else token
    return choices(field).get(token, token) if isinstance(token, str) else token


def _written(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return YES if value else NO
        case list() | tuple() if all(isinstance(item, str) for item in value):
            return "\n".join(value)
        case _:
            return json.dumps(value, ensure_ascii=False, default=str)
