"""Calls that never got a result: a run was stopped, or nobody answered. Models refuse a conversation with such."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

_NO_RESULT: Final = "This call was broken off and has no result."


class UnansweredCalls(AgentMiddleware[Any, Any, Any]):
    """Shows the model such calls as broken off. What the conversation keeps is left as it is."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        messages = answered(request.messages)
        return await handler(request if messages is request.messages else request.override(messages=messages))


def answered(messages: list[AnyMessage]) -> list[AnyMessage]:
    """The messages, each call followed by a result; the very same list if nothing is missing."""
    results = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    missing = {
        str(call["id"])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] not in results
    }
    if not missing:
        return messages
    whole: list[AnyMessage] = []
    for message in messages:
        whole.append(message)
        if isinstance(message, AIMessage):
            whole += [
                ToolMessage(_NO_RESULT, name=call["name"], tool_call_id=str(call["id"]), status="error")
                for call in message.tool_calls
                if str(call["id"]) in missing
            ]
    return whole
