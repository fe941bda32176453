"""Joins several middlewares into one.

LangChain prepares a trace around every hook of every middleware, even with tracing off. That costs more than the hooks.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Sequence
from types import new_class
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import ToolMessage
from langgraph.types import Command

Member = AgentMiddleware[Any, Any, Any]
Turn = ModelResponse[Any] | ExtendedModelResponse[Any]
ToolResult = ToolMessage | Command[Any]

_NOT_JOINED: Final = tuple(
    f"{asynchronous}{when}_{what}"
    for asynchronous in ("", "a")
    for when in ("before", "after")
    for what in ("agent", "model")
)

Handler = Callable[[Any], Awaitable[Any]]


class JoinedHooks(AgentMiddleware[Any, Any, Any]):
    """Calls the members' `awrap_model_call` and `awrap_tool_call` hooks; the first member is the outermost.

    Members may add state and tools, but have no other hooks. Middleware outside one that returns
    `ExtendedModelResponse` must pass it through unchanged.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        super().__init__()
        for member in members:
            if any(_overrides(member, hook) for hook in _NOT_JOINED):
                raise TypeError(f"{member.name} has hooks that cannot be joined")
        self.tools = [tool for member in members for tool in getattr(member, "tools", ())]
        self.state_schema = new_class("JoinedState", tuple(dict.fromkeys(member.state_schema for member in members)))
        self._around_turns = [member.awrap_model_call for member in members if _overrides(member, "awrap_model_call")]
        self._around_tools = [member.awrap_tool_call for member in members if _overrides(member, "awrap_tool_call")]

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Turn]]
    ) -> Turn:
        turn: Turn = await _wrapped(handler, self._around_turns)(request)
        return turn

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        result: ToolResult = await _wrapped(handler, self._around_tools)(request)
        return result


def _wrapped(handler: Handler, hooks: Sequence[Callable[..., Awaitable[Any]]]) -> Handler:
    for hook in reversed(hooks):
        handler = functools.partial(hook, handler=handler)
    return handler


def _overrides(member: Member, hook: str) -> bool:
    return getattr(type(member), hook) is not getattr(AgentMiddleware, hook)
