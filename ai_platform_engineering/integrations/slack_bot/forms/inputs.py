"""The fields of a form as input blocks, with hints and errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.field_names import is_secret
from ai_platform_engineering.forms.filling import is_open
from ai_platform_engineering.forms.validation import expected
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
from ai_platform_engineering.integrations.slack_bot.forms.values import has_valid_proposal

MAX_FIELDS: Final = 45
"""Each field may need two blocks (input and error), and a modal has at most 100."""

_NAME: Final = 150
_SHORT: Final = 75
_LONG: Final = 1_000


def shown_fields(form: Form) -> list[tuple[int, FormField]]:
    """The fields that get an input, with their positions. Values are sent by name, so only the first field of a name
    counts. If there are too many fields, those that need a value come first."""
    named: dict[str, tuple[int, FormField]] = {}
    for position, field in enumerate(form.fields):
        named.setdefault(field.field_name, (position, field))
    fields = list(named.values())
    if len(fields) <= MAX_FIELDS:
        return fields
    needed_first = sorted(fields, key=lambda asked: not is_open(asked[1]))
    return sorted(needed_first[:MAX_FIELDS], key=lambda asked: asked[0])


def field_blocks(form: Form, *, max_size: float = math.inf, in_message: bool = False) -> Iterator[Block]:
    """The blocks of all fields. A field that takes more than an equal share of `max_size` is reduced: first without
    the list of its options, then without its proposed value."""
    fields = shown_fields(form)
    version = version_of(form)
    for position, field in fields:
        name = block_id(position, version)
        blocks = _blocks(name, field, element_of(field, in_message=in_message), _LONG)
        if size(blocks) > max_size / len(fields):
            blocks = _blocks(name, field, text_input(field), _LONG)
        if size(blocks) > max_size / len(fields):
            blocks = _blocks(name, field, text_element(None), _SHORT)
        yield from blocks


def _blocks(name: str, field: FormField, element: Block, max_length: int) -> list[Block]:
    hidden = has_valid_proposal(field) and not any(key.startswith("initial_") for key in element)
    label = line(field.field_name, min(max_length, _NAME))
    hint = " ".join(_hint(field, element, hidden=hidden))
    optional = not field.required or hidden
    asked = input_block(name, label, element, line(hint, max_length) if hint else "", optional=optional)
    return [asked, context(f":warning: {escaped_line(field.error, max_length)}")] if field.error else [asked]


def _hint(field: FormField, element: Block, *, hidden: bool) -> Iterator[str]:
    if hidden:
        yield "Leave it empty to keep the proposed value."
    elif not field.required and has_valid_proposal(field) and element["type"] != "multi_static_select":
        yield "Left empty, it gets the proposed value."
    if is_secret(field.field_name):
        yield "Your input is visible here; it is not shown in the thread afterwards."
    if field.field_description.strip():
        yield _sentence(field.field_description)
    if element["type"] == "plain_text_input" and field.field_type == "multiselect":
        yield "One per line, or separated by commas."
    if element["type"].endswith("_input") and (what := expected(field)) != "text":
        yield _sentence(f"It takes {what}")


def _sentence(text: str) -> str:
    text = text.strip()
    return text if text.endswith((".", "!", "?", ":")) else f"{text}."
