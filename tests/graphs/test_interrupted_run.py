"""The conversation after a run that was stopped: it is complete, and the next turn can go on from it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.events import InputRequired, ToolFinished
from ai_platform_engineering.graphs.agent_graph import Graph, agent_graph
from ai_platform_engineering.graphs.history import OUTCOME_UNKNOWN
from ai_platform_engineering.graphs.interrupted_run import complete_conversation
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.runs.outcomes import InterruptedRun
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import GraphRun
from tests.runs.graphs import agent, context, settings_of, supervisor

WAITED = "This call was ended while it waited for a person's answer. What it waited for was not done."


@tool
def version() -> str:
    """The version."""
    return "v3"


class Holding:
    """A tool that does not come back, and tells when it was called."""

    def __init__(self, calls: int = 1) -> None:
        self.called = asyncio.Event()
        self._calls = calls

    def tool(self, name: str = "hold") -> BaseTool:
        @tool(name)
        async def hold() -> str:
            """Holds."""
            self._calls -= 1
            if not self._calls:
                self.called.set()
            await asyncio.Event().wait()
            return ""

        return hold


def scripted(*turns: Turn) -> ScriptedChatModel:
    return ScriptedChatModel(script=lambda cue: turns[cue.turn] if cue.turn < len(turns) else Turn("Done."))


def delegates(*agents: str) -> Turn:
    return Turn("", [("task", {"description": "do it", "subagent_type": name}) for name in agents])


async def interrupted(graph: Graph, holding: Holding) -> InterruptedRun:
    """A run that is stopped once one call has finished and the others hold."""
    run = GraphRun(graph, "supervisor", "q", context())
    finished = asyncio.Event()

    async def consume() -> None:
        async for event in run.events():
            if isinstance(event, ToolFinished):
                finished.set()

    task = asyncio.create_task(consume())
    await holding.called.wait()
    await finished.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return run.interrupted


async def messages(graph: Graph, number: int = 1) -> list[AnyMessage]:
    state = await graph.aget_state({"configurable": {"thread_id": f"context-{number}"}})
    assert not state.interrupts
    found: list[AnyMessage] = state.values.get("messages", [])
    return found


def results(conversation: list[AnyMessage]) -> Mapping[str | None, tuple[str, str]]:
    found = [message for message in conversation if isinstance(message, ToolMessage)]
    return {message.name: (str(message.text), message.status) for message in found}


async def test_finished_calls_keep_their_results_and_the_others_are_unknown() -> None:
    holding = Holding(2)
    tools = [version, holding.tool(), holding.tool("hold_too")]
    model = scripted(Turn("", [("hold", {}), ("version", {}), ("hold_too", {})]))
    graph = agent_graph(settings_of(), model, tools, "You look.", name="supervisor", checkpointer=InMemorySaver())
    await complete_conversation(graph, await interrupted(graph, holding))
    conversation = await messages(graph)
    assert results(conversation) == {
        "hold": (OUTCOME_UNKNOWN, "error"),
        "version": ("v3", "success"),
        "hold_too": (OUTCOME_UNKNOWN, "error"),
    }
    asked, called, *ended = conversation
    assert (asked.type, asked.text) == ("human", "q")
    assert isinstance(called, AIMessage)
    ids = {call["name"]: call["id"] for call in called.tool_calls}
    assert {m.name: m.tool_call_id for m in ended if isinstance(m, ToolMessage)} == ids
    assert len(ended) == 3

    await complete_conversation(graph, InterruptedRun("context-1", "task-2", (), "And then?", "It was stopped."))
    state = await graph.aget_state({"configurable": {"thread_id": "context-1"}})
    assert [str(message.text) for message in state.values["messages"][5:]] == ["And then?", "It was stopped."]
    assert state.next == ()


async def test_a_delegation_says_what_its_agent_had_done() -> None:
    holding = Holding()
    works = scripted(Turn("", [("version", {})]), Turn("", [("hold", {})]))
    graph = supervisor(scripted(delegates("jira")), {"jira": agent("jira", works, [version, holding.tool()])})
    await complete_conversation(graph, await interrupted(graph, holding))
    [(text, status)] = results(await messages(graph)).values()
    assert text == f"{OUTCOME_UNKNOWN} It had completed: version. In flight when it was interrupted: hold."
    assert status == "error"


async def test_an_agent_that_asked_a_person_has_nothing_under_way() -> None:
    ask = Turn("", [("request_user_input", {"title": "Which?", "fields": [{"name": "name"}]})])
    works = scripted(Turn("", [("version", {})]), ask)
    graph = supervisor(
        scripted(delegates("argocd", "jira")),
        {"jira": agent("jira", works, [version]), "argocd": agent("argocd", scripted(Turn("Synced.")))},
    )
    run = GraphRun(graph, "supervisor", "q", context())
    history = [event async for event in run.events()]
    assert isinstance(history[-1], InputRequired)
    await complete_conversation(graph, InterruptedRun("context-1", "task-1", tuple(history)))
    by_name = [str(m.text) for m in await messages(graph) if isinstance(m, ToolMessage)]
    assert sorted(by_name) == ["Synced.", f"{WAITED} It had completed: version."]


async def test_of_a_run_that_was_killed_the_question_and_the_end_are_added() -> None:
    seen: list[list[str]] = []

    def part(cue: ModelInput) -> Turn:
        seen.append([str(message.text) for message in cue.messages[1:]])
        return Turn("Again.")

    model = ScriptedChatModel(script=part)
    graph = agent_graph(settings_of(), model, [version], "You look.", name="supervisor", checkpointer=InMemorySaver())
    run = InterruptedRun("context-1", "task-1", (), "What is it?", "It was stopped.")
    for _ in range(2):  # the second time the question is there already
        await complete_conversation(graph, run)
        asked, ended = await messages(graph)
        assert (asked.type, asked.text, asked.id) == ("human", "What is it?", "task-1")
        assert (ended.type, ended.text) == ("ai", "It was stopped.")
    assert [event async for event in GraphRun(graph, "supervisor", "q", context(2)).events()]
    assert seen == [["q"]]
    other = InterruptedRun("context-2", "task-9", (), "And then?", "It was stopped again.")
    await complete_conversation(graph, other)
    assert [str(message.text) for message in await messages(graph, 2)] == [
        "q",
        "Again.",
        "And then?",
        "It was stopped again.",
    ]


async def test_a_run_with_an_answer_and_a_graph_without_memory_are_left_alone() -> None:
    graph = agent_graph(settings_of(), scripted(), [version], "You look.", name="jira", checkpointer=InMemorySaver())
    await graph.ainvoke(
        {"messages": [HumanMessage("q")]}, {"configurable": {"thread_id": "context-1"}}, context=context()
    )
    before = await messages(graph)
    await complete_conversation(graph, InterruptedRun("context-1", "task-1"))
    assert await messages(graph) == before
    await complete_conversation(agent("jira", scripted()), InterruptedRun("context-1", "task-1", (), "q", "e"))
