"""Middlewares joined into one do what they do one after the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NotRequired

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.types import Command

from ai_platform_engineering.graphs.joined_hooks import JoinedHooks
from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn


@tool
def count() -> str:
    """Counts."""
    return "one"


@tool
def weigh() -> str:
    """Weighs."""
    return "heavy"


class CountState(AgentState[Any]):
    counted: NotRequired[int]


class WeighState(AgentState[Any]):
    weighed: NotRequired[int]


class Noting(AgentMiddleware[Any, Any, Any]):
    """Notes what goes in and out."""

    def __init__(self, label: str, notes: list[str]) -> None:
        super().__init__()
        self._label = label
        self._notes = notes

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        self._notes.append(f"{self._label} asks")
        response = await handler(request)
        self._notes.append(f"{self._label} has it")
        return response


class Counting(Noting):
    state_schema = CountState
    tools = (count,)


class Weighing(Noting):
    state_schema = WeighState
    tools = (weigh,)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        self._notes.append(f"{self._label} lets {request.tool_call['name']} be called")
        return await handler(request)


class Hurried(AgentMiddleware[Any, Any, Any]):
    async def abefore_model(self, state: Any, runtime: Any) -> None: ...


@pytest.mark.parametrize("join", [lambda members: members, lambda members: [JoinedHooks(members)]])
async def test_the_first_is_outermost_and_all_bring_their_tools_and_their_state(join: Callable[..., Any]) -> None:
    notes: list[str] = []
    part = [Turn("", [("count", {}), ("weigh", {})]), Turn("Done.")]
    graph = create_agent(
        ScriptedChatModel(script=part), middleware=join([Counting("first", notes), Weighing("second", notes)])
    )
    state = await graph.ainvoke({"messages": [HumanMessage("go")], "counted": 1, "weighed": 2})  # type: ignore[typeddict-unknown-key]
    turn = ["first asks", "second asks", "second has it", "first has it"]
    tools = ["second lets count be called", "second lets weigh be called"]
    assert notes == [*turn, *tools, *turn]
    assert [message.text for message in state["messages"]] == ["go", "", "one", "heavy", "Done."]
    assert (state["counted"], state["weighed"]) == (1, 2)  # type: ignore[typeddict-item]


class Updating(AgentMiddleware[Any, Any, Any]):
    """Changes the state together with the model's turn."""

    state_schema = CountState

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        removed = RemoveMessage(id=str(request.messages[0].id))
        return ExtendedModelResponse(await handler(request), Command(update={"messages": [removed], "counted": 2}))


class Repeating(AgentMiddleware[Any, Any, Any]):
    """Calls the model twice and returns the second turn."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        assert isinstance(await handler(request), ModelResponse)
        return await handler(request)


async def test_a_state_update_passes_middleware_that_only_knows_responses() -> None:
    graph = create_agent(
        ScriptedChatModel(script=[Turn("Done.")]), middleware=[JoinedHooks([Repeating(), Noting("", []), Updating()])]
    )
    state = await graph.ainvoke({"messages": [HumanMessage("first"), HumanMessage("second")]})
    assert [message.text for message in state["messages"]] == ["second", "Done."]
    assert state["counted"] == 2


def test_one_with_other_hooks_cannot_be_joined() -> None:
    with pytest.raises(TypeError, match="Hurried"):
        JoinedHooks([Hurried()])
