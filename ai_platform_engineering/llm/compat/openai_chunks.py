"""Streamed chunks of the OpenAI API as plain dicts.

`chat.completions.create` builds a typed object of every chunk, which LangChain turns into a dict again: more than half
of the CPU of a streamed model call. The SDK's public `post` leaves chunks as they are. Authentication, errors and
reading of the stream stay the SDK's. `ChatOpenAI.async_client`, where LangChain calls `create`, is not documented.
"""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream

_PATH: Final = "/chat/completions"
_OPTIONS: Final = {
    "extra_headers": "headers",
    "extra_query": "params",
    "extra_body": "extra_json",
    "timeout": "timeout",
}
"""Arguments of `create` that are no part of the body, and their names in the options of `post`."""


def with_dict_chunks(model: Any) -> None:
    """Let a chat model of LangChain's OpenAI package read its streams as dicts."""
    model.async_client = _DictCompletions(model.root_async_client)


class _DictCompletions:
    """`client.chat.completions` with another `create`."""

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
    """The SDK's stream, with the parts of a chunk that LangChain looks up unconditionally."""

    def __init__(self, stream: AsyncStream[object]) -> None:
        self._stream = stream

    async def __aenter__(self) -> _DictStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stream.close()

    async def __aiter__(self) -> AsyncIterator[Any]:
        async for chunk in self._stream:
            yield completed(chunk)


def completed(chunk: Any) -> Any:
    """A chunk with the fields that the typed one has even where the server left them out."""
    for choice in _dicts(chunk, "choices"):
        for call in _dicts(choice.setdefault("delta", None), "tool_calls"):
            call.setdefault("index", None)
            call.setdefault("function", {})
    return chunk


def _dicts(parent: Any, key: str) -> list[dict[str, Any]]:
    items = parent.get(key) if isinstance(parent, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
