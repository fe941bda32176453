"""langchain-openai: the attribute that holds its SDK client, and the private method that converts a streamed chunk.

`stream_dicts` replaces `ChatOpenAI.async_client`, which the documentation does not name. LangChain calls its `create`,
which builds a typed object from every chunk; LangChain turns that object into a dict again. Both steps together take
more than half of the CPU time of a streamed model call. The SDK's public `post` returns plain dicts. The SDK still does
authentication, error handling and parsing of the stream.

`with_complete_deltas` overrides `ChatOpenAI._convert_chunk_to_generation_chunk`, which drops two parts of a delta.
`delta.refusal` is the only text of a refusal. The argument text of a tool call is the only evidence of invalid JSON,
because LangChain repairs it silently.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import AsyncIterator, Mapping
from types import new_class
from typing import TYPE_CHECKING, Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

RAW_ARGUMENTS: Final = "raw_arguments"
"""Key in `additional_kwargs`: the argument text of each streamed call, by its index."""

_CONVERT: Final = "_convert_chunk_to_generation_chunk"
_PATH: Final = "/chat/completions"
_OPTIONS: Final = {
    "extra_headers": "headers",
    "extra_query": "params",
    "extra_body": "extra_json",
    "timeout": "timeout",
}
"""Arguments of `create` that are not part of the body, and their names in the options of `post`."""


def stream_dicts(model: Any) -> None:
    """Make a chat model of langchain-openai read its streams as dicts."""
    model.async_client = _DictCompletions(model.root_async_client)


@functools.cache
def with_complete_deltas(chat_class: type[BaseChatModel]) -> type[BaseChatModel]:
    """A subclass of a chat class of langchain-openai that keeps refusals and argument texts."""
    if not callable(getattr(chat_class, _CONVERT, None)):
        raise RuntimeError(
            f"langchain-openai changed: {chat_class.__name__} has no method {_CONVERT}, without which refusals and "
            "invalid tool calls are lost; install the version in requirements.lock"
        )
    extended: type[BaseChatModel] = new_class(
        chat_class.__name__,
        (_CompleteDeltas, chat_class),
        {},
        lambda body: body.update(__module__=chat_class.__module__),
    )
    return extended


class _DictCompletions:
    """`client.chat.completions` with a `create` that streams dicts."""

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client
        # The package is an optional extra.
        self._stream_class = importlib.import_module("openai").AsyncStream[object]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client.chat.completions, name)

    async def create(self, **payload: Any) -> Any:
        if not payload.get("stream"):
            return await self._client.chat.completions.create(**payload)
        options: Any = {_OPTIONS[name]: payload.pop(name) for name in _OPTIONS if name in payload}
        stream = await self._client.post(
            _PATH, body=payload, cast_to=object, options=options, stream=True, stream_cls=self._stream_class
        )
        return _DictStream(stream)


class _DictStream:
    """The SDK's stream of dicts, each with the keys that LangChain requires."""

    def __init__(self, stream: AsyncStream[object]) -> None:
        self._stream = stream

    async def __aenter__(self) -> _DictStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.close()

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for chunk in self._stream:
            yield _with_required_keys(chunk)


def _with_required_keys(chunk: Any) -> Any:
    """The typed chunk has these keys even if the server omits them, so LangChain reads them without a check."""
    for choice in _dicts(chunk, "choices"):
        for call in _dicts(choice.setdefault("delta", None), "tool_calls"):
            call.setdefault("index", None)
            call.setdefault("function", {})
    return chunk


def _dicts(parent: Any, key: str) -> list[dict[str, Any]]:
    items = parent.get(key) if isinstance(parent, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


class _CompleteDeltas:
    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        converted: ChatGenerationChunk | None = getattr(super(), _CONVERT)(
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
