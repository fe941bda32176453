"""One model call with its limits: timeouts, maximum output length and retries."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.config import get_stream_writer

from ai_platform_engineering.llm.failures import (
    RETRYABLE,
    Kind,
    ModelFailedError,
    ModelFailure,
    ModelOrigin,
    retry_message,
)
from ai_platform_engineering.llm.provider_errors import model_failure

logger = logging.getLogger(__name__)

_FIRST_WAIT: Final = 0.5
# A notice about a shorter wait would be gone before a person can read it.
_MIN_ANNOUNCED_WAIT: Final = 1.0
_END: Final = object()
_OUTPUT_FIELDS: Final = ("text", "thinking", "reasoning", "partial_json", "arguments", "input")


@dataclass(frozen=True, slots=True)
class CallLimits:
    """All times are in seconds. `whole_answers` allows calls without streaming where no reader shows partial text."""

    timeout: float
    idle_timeout: float
    max_retries: int
    max_retry_wait: float
    max_output_chars: int
    whole_answers: bool = False


@dataclass(frozen=True, slots=True)
class RetryNotice:
    """A message for people that the run waits for a retry. It is written into the run's stream."""

    text: str
    message_id: str = field(default_factory=lambda: f"notice-{uuid.uuid4().hex}")


class _LimitError(Exception):
    def __init__(self, kind: Kind, limit: float | None = None) -> None:
        super().__init__(kind)
        self.failure = ModelFailure(kind, limit=limit)


class UnreadableAnswerError(_LimitError):
    """The provider's answer does not have the format of its API."""

    def __init__(self) -> None:
        super().__init__("unreadable")


async def guarded(
    call: Callable[[], AsyncIterator[Any]], origin: ModelOrigin, limits: CallLimits
) -> AsyncGenerator[Any, None]:
    """Yield the items of `call`. A call that fails before its first item is retried if the failure is retryable."""
    retries = 0
    while True:
        started = False
        try:
            async with aclosing(_limited(call(), limits)) as items:
                async for item in items:
                    started = True
                    yield item
            if not started:
                raise UnreadableAnswerError
            return
        except Exception as error:
            failure = _failure(error, started)
            if failure is None:
                raise
            seconds = None if started else _wait(failure, retries, limits)
            level = logging.INFO if seconds is not None else _log_level(failure)
            logger.log(
                level, "%s %s: %s: %s", origin.provider, origin.model, failure.kind, failure.detail or "no details"
            )
            if seconds is None:
                raise ModelFailedError(failure, origin) from error
        retries += 1
        _announce(retry_message(failure, origin, seconds), seconds)
        await asyncio.sleep(seconds)


async def _limited(stream: AsyncIterator[Any], limits: CallLimits) -> AsyncGenerator[Any, None]:
    """The stream within its limits. A started answer that reaches a limit ends with the finish reason `length`."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + limits.timeout
    last: ChatGenerationChunk | None = None
    length, answered = 0, False
    async with aclosing(cast(AsyncGenerator[Any, None], stream)):
        while True:
            item = await _next(stream, deadline - loop.time(), limits.idle_timeout)
            if item is _END:
                return
            if item is None and not answered:
                raise _LimitError("timeout", limits.timeout)
            if last is not None and (item is None or (length >= limits.max_output_chars and _length(item))):
                yield _cut(last)
                return
            yield item
            if not isinstance(item, ChatGenerationChunk):
                return  # a complete answer of a call without streaming
            length += _length(item)
            answered = answered or bool(str(item.message.text).strip())
            last = item


async def _next(stream: AsyncIterator[Any], left: float, idle: float) -> Any:
    """The next item; None after the timeout of the whole call."""
    # A stream that always has data never suspends, so `asyncio.timeout` alone would not end it.
    if left <= 0:
        return None
    try:
        async with asyncio.timeout(min(left, idle)) as scope:
            return await anext(stream, _END)
    except TimeoutError:
        if not scope.expired():
            raise
    if left <= idle:
        return None
    raise _LimitError("stalled", idle)


def _failure(error: Exception, started: bool) -> ModelFailure | None:
    if isinstance(error, _LimitError):
        return error.failure
    failure = model_failure(error)
    if failure is not None and started and failure.kind in ("unreachable", "timeout"):
        return replace(failure, kind="interrupted")
    return failure


def _log_level(failure: ModelFailure) -> int:
    # The error message refers to the log, and interactive commands show only errors of the log.
    return logging.ERROR if failure.kind == "request" else logging.WARNING


def _wait(failure: ModelFailure, retries: int, limits: CallLimits) -> float | None:
    """Seconds until the next attempt, or None if there is none."""
    if failure.kind not in RETRYABLE or retries >= limits.max_retries:
        return None
    seconds: float = _FIRST_WAIT * 2**retries if failure.retry_after is None else failure.retry_after
    return seconds if seconds <= limits.max_retry_wait else None


def _announce(text: str, seconds: float) -> None:
    logger.info("%s", text)
    if seconds >= _MIN_ANNOUNCED_WAIT:
        # Without a graph there is no stream to write to.
        with suppress(RuntimeError, KeyError):
            get_stream_writer()(RetryNotice(text))


def _cut(last: ChatGenerationChunk) -> ChatGenerationChunk:
    message = AIMessageChunk(
        content=[] if isinstance(last.message.content, list) else "",
        id=last.message.id,
        response_metadata={"finish_reason": "length"},
        chunk_position="last",
    )
    return ChatGenerationChunk(message=message)


def shortened(result: ChatResult, max_chars: int) -> ChatResult:
    """A complete answer, cut to `max_chars` with the finish reason `length`, as a stream would be."""
    for generation in result.generations:
        message = generation.message
        if not isinstance(message, AIMessage) or _length(generation) <= max_chars:
            continue
        if isinstance(message.content, str):
            message.content = message.content[:max_chars]
        message.response_metadata = {**message.response_metadata, "finish_reason": "length"}
    return result


def _length(chunk: ChatGeneration) -> int:
    """The number of characters of output in a chunk or an answer: text, reasoning and arguments of tool calls."""
    message = chunk.message
    content = message.content
    length = len(content) if isinstance(content, str) else sum(map(_block_length, content))
    if isinstance(message, AIMessageChunk):
        return length + sum(len(call["args"] or "") for call in message.tool_call_chunks)
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return length + sum(len(json.dumps(call["args"])) for call in calls)


def _block_length(block: Any) -> int:
    if isinstance(block, str):
        return len(block)
    return sum(len(value) for name in _OUTPUT_FIELDS if isinstance(value := block.get(name), str))
