"""Reads and replaces the tool calls of an assistant message in all places where providers put them.

LangChain has calls in `tool_calls` and `invalid_tool_calls`. Providers also have copies in content blocks or in
`additional_kwargs`, and some clients send these copies back to the provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage

MAX_NAME_LENGTH: Final = 64
UNKNOWN_TOOL: Final = "unknown_tool"

_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]")
_CALLS: Final = "tool_calls"


@dataclass(frozen=True, slots=True)
class MessageCall:
    """A tool call as the message has it: `id` may be empty or a duplicate."""

    id: str
    name: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _BlockKeys:
    """The keys of a call in one type of content block."""

    id: str
    args: str
    args_are_text: bool = False


_BLOCKS: Final[Mapping[str, _BlockKeys]] = {
    "tool_use": _BlockKeys("id", "input"),
    "tool_call": _BlockKeys("id", "args"),
    "function_call": _BlockKeys("call_id", "arguments", args_are_text=True),
}


def calls_of(message: AIMessage) -> list[MessageCall]:
    """Each call once, although it may have several copies, which share its id."""
    calls = [MessageCall(str(call["id"] or ""), call["name"], call["args"]) for call in message.tool_calls]
    calls += [
        MessageCall(str(c["id"] or ""), c["name"] or "", _arguments(c["args"])) for c in message.invalid_tool_calls
    ]
    for copies in (_in_blocks(message), _in_additional(message)):
        unmatched = [call.id for call in calls]
        for copy in copies:
            if copy.id in unmatched:
                unmatched.remove(copy.id)
            else:
                calls.append(copy)
    return [MessageCall(call.id, valid_name(call.name), call.args) for call in calls]


def has_copies(message: AIMessage) -> bool:
    """Whether there may be calls in other places than LangChain's."""
    return isinstance(message.content, list) or bool(message.invalid_tool_calls) or _CALLS in message.additional_kwargs


def valid_name(name: str) -> str:
    """The name of a tool as providers accept it."""
    return _NOT_IN_NAMES.sub("_", name)[:MAX_NAME_LENGTH] or UNKNOWN_TOOL


def with_calls(message: AIMessage, before: Sequence[MessageCall], after: Sequence[MessageCall]) -> AIMessage:
    """The message with its calls `before` replaced by `after` in all places; the same object if nothing changes."""
    unchanged = [MessageCall(str(call["id"] or ""), call["name"], call["args"]) for call in message.tool_calls]
    if not message.invalid_tool_calls and unchanged == [*after]:
        return message
    tool_calls = [{"type": "tool_call", "id": call.id, "name": call.name, "args": dict(call.args)} for call in after]
    changes: dict[str, Any] = {_CALLS: tool_calls, "invalid_tool_calls": []}
    if not isinstance(message.content, str):
        replacing = _Replacements(before, after)
        changes["content"] = [_replaced(block, replacing) for block in message.content]
    if message.additional_kwargs.get(_CALLS):
        replacing = _Replacements(before, after)
        copies = [_additional(raw, replacing) for raw in message.additional_kwargs[_CALLS]]
        changes["additional_kwargs"] = {**message.additional_kwargs, _CALLS: copies}
    return message.model_copy(update=changes)


class _Replacements:
    """New calls by old id. Among copies with the same id, the first belongs to the first call with it, and so on."""

    def __init__(self, before: Sequence[MessageCall], after: Sequence[MessageCall]) -> None:
        self._left = [*zip(before, after, strict=True)]

    def take(self, old_id: str) -> MessageCall | None:
        pair = next((pair for pair in self._left if pair[0].id == old_id), None)
        if pair is None:
            return None
        self._left.remove(pair)
        return pair[1]


def _in_blocks(message: AIMessage) -> Iterator[MessageCall]:
    for block in message.content if isinstance(message.content, list) else ():
        if (keys := _keys_of(block)) is not None and isinstance(block, dict):
            given = block.get(keys.args) or block.get("partial_json")
            yield MessageCall(str(block.get(keys.id) or ""), str(block.get("name") or ""), _arguments(given))


def _in_additional(message: AIMessage) -> Iterator[MessageCall]:
    for raw in _mappings(message.additional_kwargs.get(_CALLS)):
        function = raw.get("function")
        if isinstance(function, Mapping):
            arguments = _arguments(function.get("arguments"))
            yield MessageCall(str(raw.get("id") or ""), str(function.get("name") or ""), arguments)


def _replaced(block: Any, replacing: _Replacements) -> Any:
    keys = _keys_of(block)
    if keys is None or (call := replacing.take(str(block.get(keys.id) or ""))) is None:
        return block
    args = json.dumps(call.args, ensure_ascii=False) if keys.args_are_text else dict(call.args)
    kept = {key: value for key, value in block.items() if key != "partial_json"}
    return {**kept, keys.id: call.id, "name": call.name, keys.args: args}


def _additional(raw: Any, replacing: _Replacements) -> Any:
    if not isinstance(raw, Mapping) or (call := replacing.take(str(raw.get("id") or ""))) is None:
        return raw
    function = {**(raw.get("function") or {}), "name": call.name, "arguments": json.dumps(call.args)}
    return {**raw, "id": call.id, "function": function}


def _keys_of(block: Any) -> _BlockKeys | None:
    return _BLOCKS.get(str(block.get("type"))) if isinstance(block, Mapping) else None


def _mappings(values: Any) -> Iterable[Mapping[str, Any]]:
    return (value for value in values if isinstance(value, Mapping)) if isinstance(values, list) else ()


def _arguments(given: Any) -> Mapping[str, Any]:
    """Arguments as an object; empty if they cannot be parsed."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except (ValueError, RecursionError):
            return {}
    return given if isinstance(given, Mapping) else {}
