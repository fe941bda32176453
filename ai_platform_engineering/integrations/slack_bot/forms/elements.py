"""The Block Kit element of a form field (menu, number, URL, email or text) with its initial value."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from ai_platform_engineering.events import FieldRules, FormField
from ai_platform_engineering.forms.validation import InvalidValue, validated
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import OPTION_LENGTH, Block, plain
from ai_platform_engineering.integrations.slack_bot.forms.ids import INPUT
from ai_platform_engineering.integrations.slack_bot.forms.values import NO, YES, choices, chosen, text_of
from ai_platform_engineering.utils.a2a_common.codec.values import get_number

_MENU_LENGTH: Final = 100
_MAX_DIGITS: Final = 15


def element_of(field: FormField, *, in_message: bool) -> Block:
    """The most specific element for the field, in a message or in a modal."""
    initial = text_of(field)
    fits = initial is None or not isinstance(validated(field, initial), InvalidValue)
    match field.field_type:
        case "boolean":
            return _menu("radio_buttons", {YES: "Yes", NO: "No"}, chosen(field))
        case "select" if choices(field):
            return _menu("static_select", choices(field), chosen(field))
        case "multiselect" if choices(field):
            return _menu("multi_static_select", choices(field), chosen(field))
        # Messages cannot have these inputs, and the inputs cannot hold an invalid value.
        case "number" if not in_message and fits:
            return _number_input(field, initial)
        case "url" | "email" as kind if not in_message and fits:
            element: Block = {"type": f"{kind}_text_input", "action_id": INPUT}
            return element if initial is None else {**element, "initial_value": initial}
        case _:
            return text_input(field)


def text_input(field: FormField) -> Block:
    """The text input, which takes a value of any type."""
    return text_element(text_of(field), multiline=field.field_type in ("multiline", "multiselect"))


def text_element(initial: str | None, *, multiline: bool = False) -> Block:
    element: Block = {"type": "plain_text_input", "action_id": INPUT}
    if multiline or "\n" in (initial or ""):
        element["multiline"] = True
    return element if initial is None else {**element, "initial_value": initial}


def _menu(kind: str, options: dict[str, str], selected: list[str]) -> Block:
    shown = {value: {"text": plain(option, OPTION_LENGTH), "value": value} for value, option in options.items()}
    listed = list(shown.values())
    element: Block = {"type": kind, "action_id": INPUT}
    if len(listed) <= _MENU_LENGTH:
        element["options"] = listed
    else:
        starts = range(0, len(listed), _MENU_LENGTH)
        element["option_groups"] = [_group(start, listed[start : start + _MENU_LENGTH]) for start in starts]
    first = [shown[value] for value in selected]
    if first and kind == "multi_static_select":
        element["initial_options"] = first
    elif first:
        element["initial_option"] = first[0]
    return element


def _group(start: int, options: list[Block]) -> Block:
    return {"label": plain(f"{start + 1} to {start + len(options)}", OPTION_LENGTH), "options": options}


def _number_input(field: FormField, initial: str | None) -> Block:
    rules = field.rules or FieldRules()
    number = None if initial is None else _digits(validated(field, initial))
    if initial is not None and number is None:
        return text_input(field)
    element: Block = {"type": "number_input", "action_id": INPUT, "is_decimal_allowed": not rules.integer}
    low = _bound(rules.minimum, math.ceil if rules.integer else None)
    high = _bound(rules.maximum, math.floor if rules.integer else None)
    if low is None or high is None or float(low) <= float(high):
        element |= {key: bound for key, bound in (("min_value", low), ("max_value", high)) if bound is not None}
    return element if number is None else {**element, "initial_value": number}


def _bound(number: float | None, rounded: Callable[[float], int] | None) -> str | None:
    if number is None or not math.isfinite(number):
        return None
    return _digits(rounded(number) if rounded else number)


def _digits(number: float) -> str | None:
    """`number` as decimal digits for a number input; None if it has too many digits."""
    text = str(get_number(number) if isinstance(number, float) else number)
    return text if "e" not in text and len(text) <= _MAX_DIGITS else None
