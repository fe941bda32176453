"""An agent that fails after some of its tools have completed says which: its caller must not do that work twice."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from ai_platform_engineering.runs.failures import failure_of
from ai_platform_engineering.runs.skill_calls import SKILL_TOOLS
from ai_platform_engineering.utils.errors import FailureCode, ReadableError


class UnfinishedWorkError(ReadableError):
    """The text is that of the failure, followed by what had completed."""

    def __init__(self, sentence: str, code: FailureCode) -> None:
        super().__init__(sentence)
        self.code = code


class UnfinishedWork(AgentMiddleware[Any, Any, Any]):
    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        try:
            return await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            completed = _completed(request.messages)
            if not completed:
                raise
            failure = failure_of(error)
            details = f"Completed before: {', '.join(completed)}. Check before asking again."
            raise UnfinishedWorkError(f"{failure.sentence} {details}", failure.code) from error


def _completed(messages: Sequence[AnyMessage]) -> list[str]:
    """The tools that have succeeded since the last question, without those that only read instructions."""
    names: dict[str, None] = {}
    for message in messages:
        if message.type == "human":
            names.clear()
        elif isinstance(message, ToolMessage) and message.status != "error" and message.name:
            names[message.name] = None
    return [name for name in names if name not in SKILL_TOOLS]
