"""Converts the values of a field to Slack's inputs (text, or the position of an option) and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from ai_platform_engineering.events import FormField
from ai_platform_engineering.forms.arguments import same_value
from ai_platform_engineering.forms.field_names import is_secret
from ai_platform_engineering.forms.validation import InvalidValue, is_blank, validated
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import INITIAL_LENGTH
from ai_platform_engineering.utils.characters import clean

YES: Final = "yes"
NO: Final = "no"


def proposed(field: FormField) -> Any:
    """The value when nothing is entered: the earlier entry, also an invalid one, or else a valid default."""
    if not is_blank(field.value):
        return field.value
    default = field.default_value
    return None if is_blank(default) or isinstance(validated(field, default), InvalidValue) else default


def has_valid_proposal(field: FormField) -> bool:
    """Whether the field has a valid proposed value, so that it may be left empty although it is required."""
    value = proposed(field)
    return value is not None and value != [] and not isinstance(validated(field, value), InvalidValue)


def choices(field: FormField) -> dict[str, str]:
    """The options of a field by the value that Slack gets: their position. Duplicates are left out."""
    first: dict[str, int] = {}
    for position, option in enumerate(field.field_values or ()):
        first.setdefault(option, position)
    return {str(position): option for option, position in first.items() if not is_blank(option)}


def chosen(field: FormField) -> list[str]:
    """The options that are initially selected."""
    value = validated(field, proposed(field))
    if isinstance(value, InvalidValue) or is_secret(field.field_name):
        return []
    if field.field_type == "boolean":
        return [YES if value else NO]
    options = value if isinstance(value, list) else [value]
    return [position for position, option in choices(field).items() if option in options]


def text_of(field: FormField) -> str | None:
    """The proposed value as editable text; None if it is a secret, or if the text would be parsed to another value."""
    value = proposed(field)
    if value is None or is_secret(field.field_name):
        return None
    text = _written(value)
    if not can_be_shown(text):
        return None
    meant = validated(field, value)
    return (
        text
        if isinstance(meant, InvalidValue) or same_value(validated(field, typed_value(field, text)), meant)
        else None
    )


def can_be_shown(text: str) -> bool:
    """Whether an input can hold `text` unchanged."""
    return bool(text.strip()) and len(text) <= INITIAL_LENGTH and clean(text) == text


def typed_value(field: FormField, text: str) -> Any:
    """The text of an input as a value, before validation."""
    match field.field_type:
        case "multiselect":
            lines = [line.strip() for line in text.split("\n") if line.strip()]
            return lines if len(lines) > 1 else "".join(lines)
        case "url" | "email":
            return text.strip()
        case _:
            return text


def entered_value(field: FormField, state: Mapping[str, Any]) -> Any:
    """The value in the state of an element; None if nothing was entered."""
    if "selected_options" in state:
        options = [_option(field, option) for option in state["selected_options"] or ()]
        # Deselecting every option is an answer; never having selected one is not.
        return options if options or chosen(field) else None
    if "selected_option" in state:
        return None if state["selected_option"] is None else _option(field, state["selected_option"])
    text = state.get("value")
    return typed_value(field, text) if isinstance(text, str) else None


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
