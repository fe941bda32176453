"""The tool calls of a model's message, in the order they were made, and whether their arguments are whole.

LangChain keeps readable and unreadable calls in two lists, and completes the JSON of a call that broke off. The text
of the arguments is still in the content blocks (Anthropic, Bedrock, OpenAI Responses) or beside the content.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AIMessage
from langchain_core.utils.json import parse_partial_json

from ai_platform_engineering.llm.compat.openai_deltas import RAW_ARGUMENTS

_CALL_BLOCKS: Final = frozenset({"tool_use", "function_call", "tool_call"})


@dataclass(frozen=True, slots=True)
class StreamedCall:
    """`place` is the index of the call's content block, if it has one."""

    name: str
    id: str
    args: Mapping[str, Any]
    is_json: bool
    place: int | None = None


def streamed_calls(message: AIMessage) -> Iterator[StreamedCall]:
    readable = iter(message.tool_calls)
    unreadable = iter(message.invalid_tool_calls)
    sources = _sources(message)
    # Which list a call went to is decided as LangChain decides it. If the numbers differ, nothing can be matched.
    expected = (len(message.tool_calls), len(message.invalid_tool_calls))
    parsed = sum(_parses(raw) for raw, _ in sources)
    if (parsed, len(sources) - parsed) != expected:
        sources = [*((None, None) for _ in message.tool_calls), *(("[]", None) for _ in message.invalid_tool_calls)]
    for raw, place in sources:
        if _parses(raw):
            call = next(readable)
            yield StreamedCall(call["name"], call["id"] or "", call["args"], _is_object(raw), place)
        else:
            broken = next(unreadable)
            yield StreamedCall(broken["name"] or "", broken["id"] or "", {}, False, place)


def rewritten_block(block: str | dict[Any, Any], call_id: str, args: Mapping[str, Any] | None) -> str | dict[Any, Any]:
    """The content block of a call under another id; with `args` in place of arguments that are not whole."""
    if not isinstance(block, dict):
        return block
    own = {**block, "call_id" if "call_id" in block else "id": call_id}
    if args is not None:
        own.pop("partial_json", None)
        key = next((key for key in ("arguments", "input", "args") if key in own), "input")
        own[key] = json.dumps(args) if key == "arguments" else dict(args)
    return own


def _sources(message: AIMessage) -> list[tuple[str | None, int | None]]:
    """The argument text of each call (None where the provider parsed it) and the place of its content block."""
    blocks = message.content if isinstance(message.content, list) else ()
    found: list[tuple[str | None, int | None]] = [
        (_argument_text(block), place)
        for place, block in enumerate(blocks)
        if isinstance(block, Mapping) and block.get("type") in _CALL_BLOCKS
    ]
    if found:
        return found
    raw = message.additional_kwargs.get(RAW_ARGUMENTS)
    if isinstance(raw, Mapping):
        return [(str(raw[index]), None) for index in sorted(raw, key=int)]
    # The form that LangChain's classes for Groq and LiteLLM keep.
    beside = message.additional_kwargs.get("tool_calls")
    functions = [call.get("function") for call in beside or () if isinstance(call, Mapping)]
    return [(str(given.get("arguments") or ""), None) for given in functions if isinstance(given, Mapping)]


def _argument_text(block: Mapping[str, Any]) -> str | None:
    texts = (block.get(key) for key in ("partial_json", "arguments", "input", "args"))
    return next((text for text in texts if isinstance(text, str)), None)


def _parses(raw: str | None) -> bool:
    if not raw:
        return True
    try:
        return isinstance(parse_partial_json(raw), dict)
    except ValueError:
        return False


def _is_object(raw: str | None) -> bool:
    if not raw:
        return True
    try:
        return isinstance(json.loads(raw, strict=False), dict)
    except ValueError:
        return False
