"""The offline model as a LangChain chat model: one reply per turn, streamed word by word."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import Field

from ai_platform_engineering.offline_model.decision import decide
from ai_platform_engineering.offline_model.messages.tools import ModelReply, bound_tools

_WORD = re.compile(r"\s*\S+\s*")
_CHARACTERS_PER_TOKEN = 4
_WORD_TIME = 0.02
"""Seconds between two words of a short answer."""


class OfflineChatModel(BaseChatModel):
    """A chat model without a network: the reply depends only on the messages, the bound tools and the clock."""

    plain_results: ClassVar[bool] = True
    delay: float = 0.0
    """Seconds between two streamed words."""
    answer_time: float = 0.0
    """Without a delay: an answer is streamed within this many seconds. Text before a tool call is not paced."""
    clock: Callable[[], datetime] = Field(default=lambda: datetime.now(UTC), exclude=True)
    """The current time, for phrases like "last week"."""
    model_name: str = "offline"

    @property
    def _llm_type(self) -> str:
        return "offline"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name, "delay": self.delay}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | dict[str, Any] | bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=bound_tools(tools), tool_choice=tool_choice, **kwargs)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return _chat_result(messages, self._reply(messages, kwargs))

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        # Collects the stream, so that an answer takes as long as a streamed one.
        return generate_from_stream(
            iter([chunk async for chunk in self._astream(messages, stop, run_manager, **kwargs)])
        )

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        reply = self._reply(messages, kwargs)
        chunks = _chunks(messages, reply)
        pause = self._pause(reply, len(chunks))
        started = time.monotonic()
        for position, chunk in enumerate(chunks, 1):
            if pause:
                time.sleep(max(0.0, started + position * pause - time.monotonic()))
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        reply = self._reply(messages, kwargs)
        chunks = _chunks(messages, reply)
        pause = self._pause(reply, len(chunks))
        started = time.monotonic()
        for position, chunk in enumerate(chunks, 1):
            # Sleep even for 0 seconds: other runs get the event loop between two words, as with a network model.
            await asyncio.sleep(max(0.0, started + position * pause - time.monotonic()))
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    def _reply(self, messages: Sequence[BaseMessage], options: dict[str, Any]) -> ModelReply:
        tools = bound_tools(options.get("tools") or ())
        return decide(messages, tools, options.get("tool_choice"), self.clock())

    def _pause(self, reply: ModelReply, count: int) -> float:
        """Seconds between two chunks."""
        if self.delay or reply.calls:
            return self.delay
        return min(_WORD_TIME, self.answer_time / count)


def _chat_result(messages: Sequence[BaseMessage], reply: ModelReply) -> ChatResult:
    message = AIMessage(
        reply.text,
        tool_calls=[
            tool_call(name=call.name, args=dict(call.arguments), id=call_id)
            for call, call_id in zip(reply.calls, _call_ids(messages, reply), strict=True)
        ],
        usage_metadata=_usage(messages, reply),
        response_metadata=_metadata(reply),
    )
    return ChatResult(generations=[ChatGeneration(message=message)])


def _chunks(messages: Sequence[BaseMessage], reply: ModelReply) -> list[ChatGenerationChunk]:
    pieces = _WORD.findall(reply.text) or ([reply.text] if reply.text else [])
    last = AIMessageChunk(
        content="",
        tool_call_chunks=[
            tool_call_chunk(name=call.name, args=json.dumps(call.arguments), id=call_id, index=index)
            for index, (call, call_id) in enumerate(zip(reply.calls, _call_ids(messages, reply), strict=True))
        ],
        usage_metadata=_usage(messages, reply),
        response_metadata=_metadata(reply),
        chunk_position="last",
    )
    message_chunks = [*(AIMessageChunk(content=piece) for piece in pieces), last]
    return [ChatGenerationChunk(message=message) for message in message_chunks]


def _call_ids(messages: Sequence[BaseMessage], reply: ModelReply) -> list[str]:
    """Deterministic ids: equal for the same turn, different between the turns of a conversation."""
    last = str(messages[-1].text) if messages else ""
    return [
        "call_" + hashlib.sha256(f"{len(messages)}\0{index}\0{call.name}\0{last}".encode()).hexdigest()[:20]
        for index, call in enumerate(reply.calls)
    ]


def _usage(messages: Sequence[BaseMessage], reply: ModelReply) -> UsageMetadata:
    """An estimate, so that token counters work with this model too."""
    read = sum(len(message.text) for message in messages) // _CHARACTERS_PER_TOKEN
    written = len(reply.text) + sum(len(call.name) + len(json.dumps(call.arguments)) for call in reply.calls)
    output = max(1, written // _CHARACTERS_PER_TOKEN)
    return UsageMetadata(input_tokens=read, output_tokens=output, total_tokens=read + output)


def _metadata(reply: ModelReply) -> dict[str, Any]:
    metadata = {"finish_reason": "tool_calls" if reply.calls else "stop", "model_name": "offline"}
    return metadata if reply.not_done is None else {**metadata, "not_done": reply.not_done}
