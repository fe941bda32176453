"""The fields of a form as inputs: an element for each, and what is said about it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.credentials import is_secret
from ai_platform_engineering.forms.filling import is_open
from ai_platform_engineering.forms.fitting import takes
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import (
    Block,
    context,
    escaped_line,
    input_block,
    line,
    size,
)
from ai_platform_engineering.integrations.slack_bot.forms.elements import element_of, text_element, text_input
from ai_platform_engineering.integrations.slack_bot.forms.ids import block_id, version_of
from ai_platform_engineering.integrations.slack_bot.forms.values import is_kept

MAX_FIELDS: Final = 45
"""Each may have an input and what is wrong with it, and a modal takes 100 blocks."""

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
    if len(fields) <= MAX_FIELDS:
        return fields
    needed_first = sorted(fields, key=lambda asked: not is_open(asked[1]))
    return sorted(needed_first[:MAX_FIELDS], key=lambda asked: asked[0])


def field_blocks(form: Form, *, room: float = math.inf, in_message: bool = False) -> Iterator[Block]:
    """The blocks of all fields. One that is larger than its share of `room` is asked for with less: without the list
    of its options, then without what is proposed."""
    fields = shown_fields(form)
    version = version_of(form)
    for position, field in fields:
        name = block_id(position, version)
        blocks = _blocks(name, field, element_of(field, in_message=in_message), _LONG)
        if size(blocks) > room / len(fields):
            blocks = _blocks(name, field, text_input(field), _LONG)
        if size(blocks) > room / len(fields):
            blocks = _blocks(name, field, text_element(None), _SHORT)
        yield from blocks


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
    elif not field.required and is_kept(field) and element["type"] != "multi_static_select":
        yield "Left empty, it is as proposed."
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
