"""The contract of `compat/agent_middleware.py`: requests and state of LangChain's middleware, the delegation tool."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, NoReturn

import pytest
from deepagents.backends import StateBackend
from deepagents.middleware.subagents import SubAgentMiddleware
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import tool

from ai_platform_engineering.compat.agent_middleware import (
    AGENT_ARGUMENT,
    DELEGATION_TOOL,
    RemainingSteps,
    check_delegation_tool,
    overridden,
)
from ai_platform_engineering.compat.langgraph import DependencyChangedError
from ai_platform_engineering.llm.scripted import ScriptedChatModel, Turn

CHANGED = "changed a part that compat/agent_middleware.py uses"
LANGCHAIN = f"LangChain {version('langchain')} {CHANGED}"
DEEPAGENTS = f"deepagents {version('deepagents')} {CHANGED}"
QUESTION: Any = {"messages": [HumanMessage("go")]}


class StepsState(AgentState[Any]):
    remaining_steps: RemainingSteps


async def test_the_remaining_steps_are_in_the_state_and_not_in_the_result() -> None:
    seen: list[Any] = []

    class Counting(AgentMiddleware[StepsState, Any, Any]):
        state_schema = StepsState

        async def awrap_model_call(self, request: ModelRequest[Any], handler: Any) -> Any:
            seen.append(request.state.get("remaining_steps"))
            return await handler(request)

    graph: Any = create_agent(ScriptedChatModel(script=[Turn("Done.")]), middleware=[Counting()])
    result = await graph.ainvoke(QUESTION, {"recursion_limit": 10})
    assert seen, f"{LANGCHAIN}: awrap_model_call was not called."
    assert isinstance(seen[0], int), f"{LANGCHAIN}: RemainingStepsManager no longer fills the state."
    assert "remaining_steps" not in result, f"{LANGCHAIN}: PrivateStateAttr does not keep a key out of the result."


class OnlyAinvoke(Runnable[Any, Any]):
    """Has only what `LocalAgent` and `RemoteAgent` have."""

    name = "jira"

    def __init__(self) -> None:
        self.states: list[Mapping[str, Any]] = []

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002
        self.states.append(input)
        return {"messages": [AIMessage("Found it.")]}

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> NoReturn:  # noqa: A002
        raise NotImplementedError


def test_a_request_is_overridden_as_langchain_does_it() -> None:
    model = ScriptedChatModel(script=[Turn("Done.")])
    request: ModelRequest[Any] = ModelRequest(model=model, messages=[HumanMessage("go")], tools=[other], state=QUESTION)
    changes: Any = {"messages": [], "tools": [], "system_message": SystemMessage("Be brief."), "tool_choice": None}
    changed = overridden(request, **changes)
    assert type(changed) is type(request), f"{LANGCHAIN}: an overridden request has another type."
    assert changed == request.override(**changes), f"{LANGCHAIN}: the fields of an overridden request differ."
    assert request.tools == [other]


def delegation(runnable: Runnable[Any, Any]) -> SubAgentMiddleware:
    return SubAgentMiddleware(
        backend=StateBackend(),
        subagents=[{"name": "jira", "description": "Jira", "runnable": runnable}],
        task_description="Delegates.",
        private_state_keys=frozenset({"secret"}),
    )


async def test_the_delegation_tool_calls_ainvoke_of_the_named_agent() -> None:
    runnable = OnlyAinvoke()
    middleware = delegation(runnable)
    check_delegation_tool(middleware.tools)
    call = (DELEGATION_TOOL, {"description": "find it", AGENT_ARGUMENT: "jira"})
    model = ScriptedChatModel(script=[Turn("", [call]), Turn("Done.")])
    result = await create_agent(model, middleware=[middleware]).ainvoke(QUESTION)  # type: ignore[arg-type]
    (state,) = runnable.states
    assert state["messages"][-1].text == "find it", f"{DEEPAGENTS}: an agent does not get the description as question."
    (report,) = [message for message in result["messages"] if message.type == "tool"]
    assert report.text == "Found it.", f"{DEEPAGENTS}: the result of an agent is not the text of its last message."


@tool
def other(name: str) -> str:
    """Delegates in another way."""
    return name


@tool("task")
def renamed_argument(agent: str) -> str:
    """Delegates with another argument."""
    return agent


@pytest.mark.parametrize("tools", [[], [other], [renamed_argument]])
def test_a_changed_delegation_tool_is_refused(tools: list[Any]) -> None:
    sentence = r"deepagents: SubAgentMiddleware has no tool 'task' with the argument 'subagent_type'\. .*compat/"
    with pytest.raises(DependencyChangedError, match=sentence):
        check_delegation_tool(tools)
