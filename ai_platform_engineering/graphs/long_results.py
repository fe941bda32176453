"""Cuts long tool results: the model gets the first part and can read the rest with `read_result`.

The full result is stored in the run's state, not in the messages, so it does not lengthen every later prompt.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ModelRequest, ModelResponse, PrivateStateAttr, ToolCallRequest
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import Command
from pydantic import BaseModel, Field

from ai_platform_engineering.compat.agent_middleware import overridden
from ai_platform_engineering.graphs.coroutine_tool import CoroutineTool

STATE_KEY: Final = "long_results"
READ_TOOL: Final = "read_result"

Result = ToolMessage | Command[Any]


class LongResultsState(AgentState[Any]):
    long_results: NotRequired[Annotated[dict[str, str], PrivateStateAttr, operator.or_]]


class _ReadResultArguments(BaseModel):
    result_id: str = Field(description="The id in the note at the end of the truncated result.")
    offset: int = Field(0, description="The character to read on from.")


class LongResults(AgentMiddleware[LongResultsState, Any, Any]):
    """Cuts a result at `max_chars` and stores all of it under a short id. `read_result` is offered only if one is
    stored."""

    state_schema = LongResultsState

    def __init__(self, max_chars: int) -> None:
        super().__init__()
        self._max_chars = max_chars
        self.tools = [_read_tool(max_chars)]

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Result]]
    ) -> Result:
        result = await handler(request)
        if not isinstance(result, ToolMessage) or request.tool_call["name"] == READ_TOOL:
            return result
        text = str(result.text)
        if len(text) <= self._max_chars:
            return result
        result_id = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:8]
        shown = result.model_copy(update={"content": part(text, result_id, 0, self._max_chars)})
        return Command(update={"messages": [shown], STATE_KEY: {result_id: text}})

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        if not request.state.get(STATE_KEY):
            request = overridden(request, tools=[tool for tool in request.tools if tool_name(tool) != READ_TOOL])
        return await handler(request)


def part(text: str, result_id: str, offset: int, length: int) -> str:
    """`length` characters of a result from `offset` on, with a note on how to read the next part."""
    end = offset + length
    if end >= len(text):
        return text[offset:]
    return (
        f"{text[offset:end]}\n[Output truncated at character {end} of {len(text)}. "
        f'{READ_TOOL}(result_id="{result_id}", offset={end}) gives the next part.]'
    )


def _read_tool(max_chars: int) -> BaseTool:
    async def read(result_id: str, runtime: ToolRuntime, offset: int = 0) -> str:
        results: dict[str, str] = runtime.state.get(STATE_KEY) or {}
        text = results.get(result_id)
        if text is None:
            raise ToolException(f"There is no result {result_id!r}. Results: {', '.join(results) or 'none'}.")
        if not 0 <= offset < len(text):
            raise ToolException(f"Result {result_id!r} has {len(text)} characters; offset must be below that.")
        return part(text, result_id, offset, max_chars)

    return CoroutineTool.from_function(
        coroutine=read,
        name=READ_TOOL,
        description="The next part of a tool result that was truncated.",
        args_schema=_ReadResultArguments,
        infer_schema=False,
    )


def tool_name(tool: BaseTool | dict[str, Any]) -> str:
    return str(tool.get("name")) if isinstance(tool, dict) else tool.name
