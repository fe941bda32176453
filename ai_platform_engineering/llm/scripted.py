"""A chat model that follows a script, for tests, demos and benchmarks that need a fixed answer."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCallChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of the model: text, then tool calls as (name, arguments).

    `error` is raised after the text. `metadata` becomes the `response_metadata` of the message, `usage` its
    `usage_metadata`.
    """

    text: str = ""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    error: Exception | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    usage: UsageMetadata | None = None


@dataclass(frozen=True, slots=True)
class ModelInput:
    """The messages of one model call, and the names of the tools that it may use."""

    messages: Sequence[BaseMessage]
    tools: Sequence[str] = field(default=())

    @property
    def turn(self) -> int:
        """The number of turns that the model has had since the last human message."""
        count = 0
        for message in reversed(self.messages):
            if message.type == "human":
                break
            count += message.type == "ai"
        return count

    @property
    def question(self) -> str:
        return next((str(message.text) for message in reversed(self.messages) if message.type == "human"), "")


Script = Callable[[ModelInput], Turn]


class ScriptedChatModel(BaseChatModel):
    """Answers with the turns of its script: a list, whose last turn repeats, or a function of the model's input."""

    script: Sequence[Turn] | Script
    delay: float = 0.0
    plain_results: bool = True
    """The script reads the results of tools as they are. False to get them as a provider's model does."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | Any],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        names = tuple(convert_to_openai_tool(tool)["function"]["name"] for tool in tools)
        return self.bind(tool_names=names, **kwargs)

    def _turn(self, messages: list[BaseMessage], tools: Sequence[str]) -> Turn:
        model_input = ModelInput(messages, tools)
        if callable(self.script):
            return self.script(model_input)
        return self.script[min(model_input.turn, len(self.script) - 1)]

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        tool_names: Sequence[str] = (),
        **kwargs: Any,
    ) -> ChatResult:
        turn = self._turn(messages, tool_names)
        if turn.error is not None:
            raise turn.error
        calls = [{"name": n, "args": dict(a), "id": i} for n, a, i in _numbered(turn, messages)]
        message = AIMessage(
            turn.text, tool_calls=calls, response_metadata=dict(turn.metadata), usage_metadata=turn.usage
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        tool_names: Sequence[str] = (),
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield from _chunks(self._turn(messages, tool_names), messages)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        # Goes through the stream, as a provider's model with `streaming=True` does.
        return generate_from_stream(
            iter([chunk async for chunk in self._astream(messages, stop, run_manager, **kwargs)])
        )

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        tool_names: Sequence[str] = (),
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._turn(messages, tool_names), messages):
            if self.delay:
                await asyncio.sleep(self.delay)
            yield chunk


def _chunks(turn: Turn, messages: Sequence[BaseMessage]) -> Iterator[ChatGenerationChunk]:
    for word in re.findall(r"\S+\s*|\s+", turn.text):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    if turn.error is not None:
        raise turn.error
    calls = [
        ToolCallChunk(name=name, args=json.dumps(arguments), id=call_id, index=index, type="tool_call_chunk")
        for index, (name, arguments, call_id) in enumerate(_numbered(turn, messages))
    ]
    last = AIMessageChunk(
        content="",
        tool_call_chunks=calls,
        response_metadata=dict(turn.metadata),
        usage_metadata=turn.usage,
        chunk_position="last",
    )
    yield ChatGenerationChunk(message=last)


def _numbered(turn: Turn, messages: Sequence[BaseMessage]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    for index, (name, arguments) in enumerate(turn.calls):
        yield name, arguments, f"call-{len(messages)}-{index}"
