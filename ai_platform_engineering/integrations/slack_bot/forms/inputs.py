"""The fields of a form as inputs: which element, what stands in it, what is said about it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from ai_platform_engineering.events import FieldRules, Form, FormField
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import (
    OPTION_LENGTH,
    Block,
    context,
    escaped_line,
    input_block,
    line,
    plain,
    size,
)
from ai_platform_engineering.integrations.slack_bot.forms.ids import INPUT, block_id, version_of
from ai_platform_engineering.integrations.slack_bot.forms.values import NO, YES, choices, chosen, is_kept, text_of
from ai_platform_engineering.utils.a2a_common.codec.values import get_number
from ai_platform_engineering.utils.forms.credentials import is_secret
from ai_platform_engineering.utils.forms.filling import is_open
from ai_platform_engineering.utils.forms.fitting import Misfit, fitted, takes

MOST_FIELDS: Final = 45
"""Each may have an input and what is wrong with it, and a modal takes 100 blocks."""

_MENU_LENGTH: Final = 100
_MOST_DIGITS: Final = 15
_NAME: Final = 150
_SHORT: Final = 75
_LONG: Final = 1_000


def shown_fields(form: Form) -> list[tuple[int, FormField]]:
    """The fields that are asked, with their positions. A value is given by name, so of a name only the first counts;
    where there are too many fields, those that have to be filled in are asked."""
    named: dict[str, tuple[int, FormField]] = {}
    for position, field in enumerate(form.fields):
        named.setdefault(field.field_name, (position, field))
    fields = list(named.values())
    if len(fields) > MOST_FIELDS:
        fields = sorted(sorted(fields, key=lambda asked: not is_open(asked[1]))[:MOST_FIELDS])
    return fields


def field_blocks(form: Form, *, room: float = math.inf, in_message: bool = False) -> Iterator[Block]:
    """The blocks of all fields. One that is larger than its share of `room` is asked for with less: without the list
    of its options, then without what is proposed."""
    fields = shown_fields(form)
    version = version_of(form)
    for position, field in fields:
        name = block_id(position, version)
        blocks = _blocks(name, field, _element(field, in_message=in_message), _LONG)
        if size(blocks) > room / len(fields):
            blocks = _blocks(name, field, _text_input(field), _LONG)
        if size(blocks) > room / len(fields):
            blocks = _blocks(name, field, text_element(None), _SHORT)
        yield from blocks


def text_element(initial: str | None, *, multiline: bool = False) -> Block:
    element: Block = {"type": "plain_text_input", "action_id": INPUT}
    if multiline or "\n" in (initial or ""):
        element["multiline"] = True
    return element if initial is None else {**element, "initial_value": initial}


def _blocks(name: str, field: FormField, element: Block, longest: int) -> list[Block]:
    hidden = is_kept(field) and not any(key.startswith("initial_") for key in element)
    label = line(field.field_name, min(longest, _NAME))
    hint = " ".join(_hint(field, element, hidden=hidden))
    optional = not field.required or hidden
    asked = input_block(name, label, element, line(hint, longest) if hint else "", optional=optional)
    return [asked, context(f":warning: {escaped_line(field.error, longest)}")] if field.error else [asked]


def _hint(field: FormField, element: Block, *, hidden: bool) -> Iterator[str]:
    if hidden:
        yield "Leave it empty to keep what is proposed."
    if is_secret(field.field_name):
        yield "What you type is visible here; it is not shown in the thread afterwards."
    if field.field_description.strip():
        yield _sentence(field.field_description)
    if element["type"] == "plain_text_input" and field.field_type == "multiselect":
        yield "One on each line, or with commas between them."
    if element["type"].endswith("_input") and (what := takes(field)) != "text":
        yield _sentence(f"It takes {what}")


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."


def _element(field: FormField, *, in_message: bool) -> Block:
    initial = text_of(field)
    fits = initial is None or not isinstance(fitted(field, initial), Misfit)
    match field.field_type:
        case "boolean":
            return _menu("radio_buttons", {YES: "Yes", NO: "No"}, chosen(field))
        case "select" if choices(field):
            return _menu("static_select", choices(field), chosen(field))
        case "multiselect" if choices(field):
            return _menu("multi_static_select", choices(field), chosen(field))
        # In messages Slack has no such inputs; and none of them can hold what is wrong.
        case "number" if not in_message and fits:
            return _number_input(field, initial)
        case "url" | "email" as kind if not in_message and fits:
            element: Block = {"type": f"{kind}_text_input", "action_id": INPUT}
            return element if initial is None else {**element, "initial_value": initial}
        case _:
            return _text_input(field)


def _text_input(field: FormField) -> Block:
    return text_element(text_of(field), multiline=field.field_type in ("multiline", "multiselect"))


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
    number = None if initial is None else _digits(fitted(field, initial))
    if initial is not None and number is None:
        return _text_input(field)
    element: Block = {"type": "number_input", "action_id": INPUT, "is_decimal_allowed": not rules.integer}
    low = _bound(rules.minimum, math.ceil if rules.integer else None)
    high = _bound(rules.maximum, math.floor if rules.integer else None)
    if low is None or high is None or float(low) <= float(high):
        element |= {key: bound for key, bound in (("min_value", low), ("max_value", high)) if bound is not None}
    return element if number is None else {**element, "initial_value": number}


def _bound(number: float | None, rounded: Any) -> str | None:
    if number is None or not math.isfinite(number):
        return None
    return _digits(rounded(number) if rounded else number)


def _digits(number: float) -> str | None:
    """`number` in the digits that a number input takes, where they are few enough to be sure of."""
    text = str(get_number(number) if isinstance(number, float) else number)
    return text if "e" not in text and len(text) <= _MOST_DIGITS else None
