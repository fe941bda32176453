"""Joins several middlewares into one.

LangChain prepares a trace around every hook of every middleware, even with tracing off. That costs more than the hooks.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from types import new_class
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

from ai_platform_engineering.compat.agent_middleware import (
    MODEL_CALL_HOOK,
    TOOL_CALL_HOOK,
    check_hooks,
    overrides,
    unjoinable_parts,
)

Member = AgentMiddleware[Any, Any, Any]
ModelResult = ModelResponse[Any] | ExtendedModelResponse[Any]
ToolResult = ToolMessage | Command[Any]
Handler = Callable[[Any], Awaitable[Any]]

_MESSAGES: Final = "messages"


class JoinedHooks(AgentMiddleware[Any, Any, Any]):
    """Calls the members' `awrap_model_call` and `awrap_tool_call` hooks; the first member is the outermost.

    Members may add state and tools, but have no other hooks. The state updates of an `ExtendedModelResponse` are
    collected: middleware outside it gets the plain `ModelResponse`. A repeated call discards the updates of the first.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__()
        check_hooks()
        for member in members:
            if parts := unjoinable_parts(member):
                raise TypeError(
                    f"{member.name} cannot be joined, because its {' and '.join(parts)} would be ignored: use "
                    f"{MODEL_CALL_HOOK} and {TOOL_CALL_HOOK}, or pass it to create_agent by itself."
                )
        self.tools = [tool for member in members for tool in getattr(member, "tools", ())]
        self.state_schema = new_class("JoinedState", tuple(dict.fromkeys(member.state_schema for member in members)))
        self._model_hooks = [member.awrap_model_call for member in members if overrides(member, MODEL_CALL_HOOK)]
        self._tool_hooks = [member.awrap_tool_call for member in members if overrides(member, TOOL_CALL_HOOK)]

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResult]]
    ) -> ModelResult:
        updates: list[Mapping[str, Any]] = []
        call: Handler = handler
        for hook in reversed(self._model_hooks):
            call = functools.partial(hook, handler=functools.partial(_plain_response, call, updates))
        response = await _plain_response(call, updates, request)
        return _with_updates(response, updates)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        call: Handler = handler
        for hook in reversed(self._tool_hooks):
            call = functools.partial(hook, handler=call)
        result: ToolResult = await call(request)
        return result


async def _plain_response(
    call: Handler, updates: list[Mapping[str, Any]], request: ModelRequest[Any]
) -> ModelResponse[Any]:
    updates.clear()
    result: ModelResult = await call(request)
    if not isinstance(result, ExtendedModelResponse):
        return result
    if result.command is not None and result.command.update:
        updates.append(result.command.update)
    return result.model_response


def _with_updates(response: ModelResponse[Any], updates: Sequence[Mapping[str, Any]]) -> ModelResult:
    """The response with the updates as one command.

    Messages become part of the response: LangGraph's stream has another shape if a task writes twice to one channel.
    """
    if not updates:
        return response
    messages = [message for update in updates for message in update.get(_MESSAGES, ())]
    others = {key: value for update in updates for key, value in update.items() if key != _MESSAGES}
    response = replace(response, result=[*messages, *response.result])
    return ExtendedModelResponse(response, Command(update=others)) if others else response
