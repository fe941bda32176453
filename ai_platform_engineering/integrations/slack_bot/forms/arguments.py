"""The arguments of a tool call that waits for approval: masked credentials, inputs, and the changes made in them.

Only changed arguments are sent back: the displayed value of an argument may be shortened or masked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ai_platform_engineering.events import Form
from ai_platform_engineering.forms.questions import without_credentials
from ai_platform_engineering.integrations.slack_bot.forms.block_kit import Block, input_block, line, section, size
from ai_platform_engineering.integrations.slack_bot.forms.elements import text_element
from ai_platform_engineering.integrations.slack_bot.forms.ids import block_id, version_of
from ai_platform_engineering.integrations.slack_bot.forms.inputs import MAX_FIELDS
from ai_platform_engineering.integrations.slack_bot.forms.values import can_be_shown
from ai_platform_engineering.text import form_text

_WITHHELD: Final = "withheld"
_NAME: Final = 75
_ONE_LINE: Final = 75
_EXAMPLE: Final = 120


@dataclass(frozen=True, slots=True)
class Argument:
    name: str
    value: Any
    withheld: bool = False


def masked_form(form: Form) -> Form:
    """The form with masked credentials in its tool calls. Idempotent.

    Everyone in the channel sees the form, so credentials are masked here too, in case the supervisor did not. Forms
    are masked before they enter the state, from the stream and from the store; code that shows a form need not mask.
    """
    return replace(form, action_requests=tuple(map(_masked, form.action_requests)))


def _masked(request: dict[str, Any]) -> dict[str, Any]:
    (shown,) = without_credentials([request])
    given = request.get("args")
    if not isinstance(given, Mapping):
        return shown
    names = [name for name, value in given.items() if _is_withheld(request, name) or shown["args"][name] != value]
    return shown | {_WITHHELD: names} if names else shown


def _is_withheld(request: Mapping[str, Any], argument: str) -> bool:
    """Whether the argument was masked here. The supervisor would take a masked value for the real one."""
    names = request.get(_WITHHELD)
    return isinstance(names, list) and argument in names


def arguments(form: Form) -> list[Argument]:
    """The arguments that can be changed, by position. A form with several calls has none."""
    if len(form.action_requests) != 1:
        return []
    request = form.action_requests[0]
    given = form_text.arguments_of(request).items()
    return [Argument(name, value, _is_withheld(request, name)) for name, value in given][:MAX_FIELDS]


def argument_blocks(form: Form, *, max_size: int) -> Iterator[Block]:
    """An input for each argument; none takes more than an equal share of `max_size`."""
    asked = arguments(form)
    version = version_of(form)
    for position, argument in enumerate(asked):
        block = _block(block_id(position, version), argument, shown_text(argument))
        if size(block) > max_size // len(asked):
            block = _block(block_id(position, version), argument, None)
        yield block
    if not asked:
        yield section("There are no arguments to change.")


def shown_text(argument: Argument) -> str | None:
    """The initial text of an argument's input; None if the text would not be parsed back to the same value."""
    text = argument.value if isinstance(argument.value, str) else _json(argument.value)
    return text if can_be_shown(text) and not argument.withheld else None


def changed_argument(argument: Argument, text: str) -> Any:
    """The new value of an argument. A string argument stays a string; for others `text` must be JSON, or a `ValueError`
    says so."""
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
