"""The tool calls of a model's message in their original order, and whether their arguments are complete JSON.

LangChain splits valid and invalid calls into two lists, and repairs the JSON of a call that was cut off. The original
text of the arguments is in the content blocks (Anthropic, Bedrock, OpenAI Responses) or in `additional_kwargs`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AIMessage
from langchain_core.utils.json import parse_partial_json

from ai_platform_engineering.compat.langchain_openai import RAW_ARGUMENTS

_CALL_BLOCKS: Final = frozenset({"tool_use", "function_call", "tool_call"})


@dataclass(frozen=True, slots=True)
class StreamedCall:
    """`block_index` is the index of the call's content block, if it has one."""

    name: str
    id: str
    args: Mapping[str, Any]
    is_json: bool
    block_index: int | None = None


def streamed_calls(message: AIMessage) -> Iterator[StreamedCall]:
    valid = iter(message.tool_calls)
    invalid = iter(message.invalid_tool_calls)
    sources = _sources(message)
    # Applies LangChain's own rule for the two lists. If the counts differ, texts and calls cannot be matched.
    expected = (len(message.tool_calls), len(message.invalid_tool_calls))
    parsed = sum(_parses(raw) for raw, _ in sources)
    if (parsed, len(sources) - parsed) != expected:
        sources = [*((None, None) for _ in message.tool_calls), *(("[]", None) for _ in message.invalid_tool_calls)]
    for raw, index in sources:
        if _parses(raw):
            call = next(valid)
            yield StreamedCall(call["name"], call["id"] or "", call["args"], _is_object(raw), index)
        else:
            broken = next(invalid)
            yield StreamedCall(broken["name"] or "", broken["id"] or "", {}, False, index)


def rewritten_block(block: str | dict[Any, Any], call_id: str, args: Mapping[str, Any] | None) -> str | dict[Any, Any]:
    """The content block of a call with another id, and with `args` instead of incomplete arguments."""
    if not isinstance(block, dict):
        return block
    rewritten = {**block, "call_id" if "call_id" in block else "id": call_id}
    if args is not None:
        rewritten.pop("partial_json", None)
        key = next((key for key in ("arguments", "input", "args") if key in rewritten), "input")
        rewritten[key] = json.dumps(args) if key == "arguments" else dict(args)
    return rewritten


def _sources(message: AIMessage) -> list[tuple[str | None, int | None]]:
    """The argument text of each call (None if the provider parsed it) and the index of its content block."""
    blocks = message.content if isinstance(message.content, list) else ()
    found: list[tuple[str | None, int | None]] = [
        (_argument_text(block), index)
        for index, block in enumerate(blocks)
        if isinstance(block, Mapping) and block.get("type") in _CALL_BLOCKS
    ]
    if found:
        return found
    raw = message.additional_kwargs.get(RAW_ARGUMENTS)
    if isinstance(raw, Mapping):
        return [(str(raw[index]), None) for index in sorted(raw, key=int)]
    # The format of LangChain's classes for Groq and LiteLLM.
    calls = message.additional_kwargs.get("tool_calls")
    functions = [call.get("function") for call in calls or () if isinstance(call, Mapping)]
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
