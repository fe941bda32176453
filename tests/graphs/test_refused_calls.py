"""Calls that must not run, in a graph with an approval gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.events import FinalResult, ToolFinished
from ai_platform_engineering.graphs.agent_graph import agent_graph
from ai_platform_engineering.graphs.approval_gate import ApprovalGate
from tests.invariants import check
from tests.runs.graphs import events_of, settings_of


class Turns(BaseChatModel):
    """Gives these messages, one for each turn."""

    turns: list[AIMessage]

    @property
    def _llm_type(self) -> str:
        return "turns"

    def bind_tools(self, tools: Sequence[Any], **_more: Any) -> Runnable[LanguageModelInput, AIMessage]:
        return self.bind(tools=tools)

    def _generate(
        self, _messages: list[BaseMessage], _stop: list[str] | None = None, _manager: Any = None, **_given: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.turns.pop(0))])


async def test_nobody_is_asked_to_approve_a_call_that_was_cut_off() -> None:
    deleted: list[str] = []

    @tool
    def delete_application(name: str) -> str:
        """Deletes an application."""
        deleted.append(name)
        return "deleted"

    cut = AIMessage(
        "",
        tool_calls=[{"name": "delete_application", "args": {"name": "guestbook-stag"}, "id": "a"}],
        response_metadata={"finish_reason": "length"},
    )
    graph = agent_graph(
        settings_of(),
        Turns(turns=[cut, AIMessage("Nothing was deleted.")]),
        [delete_application],
        "You delete.",
        name="supervisor",
        middleware=[ApprovalGate("supervisor", lambda _tool: True)],
        checkpointer=InMemorySaver(),
    )
    events = await events_of(graph)
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert deleted == []
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.reason == "not executed: the model's turn was cut off by its output limit"
