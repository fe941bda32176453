"""The arguments of a call that waits for approval, as inputs, and what was changed in them.

Only what was changed is an answer: what is shown of an argument may be less than what it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import Block, input_block, line, section, size
from ai_platform_engineering.integrations.slack_bot.forms.elements import text_element
from ai_platform_engineering.integrations.slack_bot.forms.ids import block_id, version_of
from ai_platform_engineering.integrations.slack_bot.forms.inputs import MAX_FIELDS
from ai_platform_engineering.integrations.slack_bot.forms.masking import is_withheld
from ai_platform_engineering.integrations.slack_bot.forms.values import can_be_shown
from ai_platform_engineering.text import form_words

_NAME: Final = 75
_ONE_LINE: Final = 75
_EXAMPLE: Final = 120


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    value: Any
    withheld: bool = False


def arguments(form: Form) -> list[Argument]:
    """The arguments that can be changed, by position: those of the one call that is asked for."""
    if len(form.action_requests) != 1:
        return []
    request = form.action_requests[0]
    given = form_words.arguments_of(request).items()
    return [Argument(name, value, is_withheld(request, name)) for name, value in given][:MAX_FIELDS]


def argument_blocks(form: Form, *, room: int) -> Iterator[Block]:
    """An input for each argument, none larger than its share of `room`."""
    asked = arguments(form)
    version = version_of(form)
    for position, argument in enumerate(asked):
        block = _block(block_id(position, version), argument, shown_text(argument))
        if size(block) > room // len(asked):
            block = _block(block_id(position, version), argument, None)
        yield block
    if not asked:
        yield section("There are no arguments to change.")


def shown_text(argument: Argument) -> str | None:
    """What stands in the input of an argument; nothing where it could not come back as what it is."""
    text = argument.value if isinstance(argument.value, str) else _json(argument.value)
    return text if can_be_shown(text) and not argument.withheld else None


def changed_argument(argument: Argument, text: str) -> Any:
    """What `text` in its input makes of an argument. A text stays a text, whatever it looks like; of other arguments
    it has to be JSON, or a `ValueError` says so."""
    if isinstance(argument.value, str):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        example = shown_text(argument) or "null"
        raise ValueError(f"`{line(argument.name, _NAME)}` takes JSON, for example {line(example, _EXAMPLE)}.") from None


def _block(name: str, argument: Argument, initial: str | None) -> Block:
    is_text = isinstance(argument.value, str)
    element = text_element(initial, multiline=not is_text or len(initial or "") > _ONE_LINE)
    hints = ["Leave it empty to keep it as it is." if initial is None else ""]
    hints.append("" if is_text else "JSON.")
    return input_block(name, line(argument.name, _NAME), element, " ".join(filter(None, hints)), optional=True)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
