"""LangChain's OpenAI chat classes, with two parts of a streamed delta that they drop.

`delta.refusal` is the only text of a refusal. The argument text of a tool call is the only way to see that it was not
valid JSON: LangChain completes it silently.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import new_class
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

RAW_ARGUMENTS: Final = "raw_arguments"
"""Key in `additional_kwargs`: the argument text of each streamed call, by its index."""

_HOOK: Final = "_convert_chunk_to_generation_chunk"


class _WholeDeltas:
    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        converted: ChatGenerationChunk | None = getattr(super(), _HOOK)(
            chunk, default_chunk_class, base_generation_info
        )
        if converted is None or not isinstance(message := converted.message, AIMessageChunk):
            return converted
        choices = chunk.get("choices") or chunk.get("chunk", {}).get("choices") or ()
        delta = choices[0].get("delta") if choices else None
        if not isinstance(delta, Mapping):
            return converted
        if raw := _raw_arguments(delta):
            message.additional_kwargs[RAW_ARGUMENTS] = raw
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            message.additional_kwargs["refusal"] = refusal
            message.content = f"{message.content}{refusal}"
            return ChatGenerationChunk(message=message, generation_info=converted.generation_info)
        return converted


def _raw_arguments(delta: Mapping[str, Any]) -> dict[str, str]:
    return {
        str(call["index"]): str(call["function"].get("arguments") or "")
        for call in delta.get("tool_calls") or ()
        if isinstance(call.get("function"), Mapping) and "index" in call
    }


@functools.cache
def with_whole_deltas(chat_class: type[BaseChatModel]) -> type[BaseChatModel]:
    """`chat_class`, extended if it is one of LangChain's OpenAI classes."""
    if not hasattr(chat_class, _HOOK):
        return chat_class
    extended: type[BaseChatModel] = new_class(
        chat_class.__name__, (_WholeDeltas, chat_class), {}, lambda body: body.update(__module__=chat_class.__module__)
    )
    return extended
