"""A tool call whose arguments a person edited before approving it.

The edited arguments are metadata of the result message, so every reader of results gets the tool's own output. Models
get them as a note before the output.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from langchain_core.messages import AnyMessage, ToolMessage

_KEY: Final = "edited_arguments"


def with_edited_arguments(result: ToolMessage, arguments: Mapping[str, Any]) -> ToolMessage:
    return result.model_copy(update={"additional_kwargs": {**result.additional_kwargs, _KEY: dict(arguments)}})


def edited_arguments_of(result: ToolMessage) -> Mapping[str, Any] | None:
    arguments = result.additional_kwargs.get(_KEY)
    return arguments if isinstance(arguments, Mapping) else None


def with_notes(messages: list[AnyMessage]) -> list[AnyMessage]:
    """The messages with a note for each edited call; the same list object if there is none."""
    if not any(_KEY in message.additional_kwargs for message in messages):
        return messages
    shown = [_noted(message) for message in messages]
    return messages if all(new is old for new, old in zip(shown, messages, strict=True)) else shown


def output_of(result: ToolMessage) -> str:
    """The tool's own output, without the note if it has one."""
    arguments = edited_arguments_of(result)
    return str(result.text) if arguments is None else str(result.text).removeprefix(_note(arguments))


def _noted(message: AnyMessage) -> AnyMessage:
    if not isinstance(message, ToolMessage) or (arguments := edited_arguments_of(message)) is None:
        return message
    note = _note(arguments)
    if str(message.text).startswith(note):
        return message
    block = {"type": "text", "text": note}
    content = f"{note}{message.content}" if isinstance(message.content, str) else [block, *message.content]
    return message.model_copy(update={"content": content})


def _note(arguments: Mapping[str, Any]) -> str:
    return f"A person changed the arguments to {json.dumps(arguments, ensure_ascii=False, default=str)}.\n"
