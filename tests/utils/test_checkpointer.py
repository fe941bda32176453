"""Conversations: remembered across restarts, trimmed when a run has ended, bounded in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from ai_platform_engineering.settings import SettingsError, load_settings
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.checkpointer import FileSaver, MemorySaver, checkpointer_for, settle
from ai_platform_engineering.utils.graphs.agent_graph import Graph

KINDS = ("sqlite", "memory")


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph_with(saver: BaseCheckpointSaver[Any] | None) -> Graph:
    """Each question takes three steps, one of them a graph of its own; "ask" waits for an answer there."""

    def inner(state: State) -> dict[str, Any]:
        if state["messages"][-1].text == "ask":
            return {"messages": [HumanMessage(f"answered {interrupt('which?')}")]}
        return {"messages": [HumanMessage(f"seen {len(state['messages'])}")]}

    below = StateGraph(State)
    below.add_node("inner", inner)
    below.add_edge(START, "inner")
    below.add_edge("inner", END)
    above = StateGraph(State)
    above.add_node("first", lambda state: {})
    above.add_node("below", below.compile())
    above.add_edge(START, "first")
    above.add_edge("first", "below")
    above.add_edge("below", END)
    return above.compile(checkpointer=saver)


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


async def ask(graph: Graph, name: str, text: str | Command[Any]) -> list[str]:
    given = text if isinstance(text, Command) else {"messages": [HumanMessage(text)]}
    state = await graph.ainvoke(given, thread(name), durability="exit")
    return [str(message.text) for message in state["messages"]]


async def states(saver: BaseCheckpointSaver[Any], name: str) -> list[str]:
    """The namespaces of what is kept of a conversation."""
    return [found.config["configurable"]["checkpoint_ns"] async for found in saver.alist(thread(name))]


@pytest.fixture(params=KINDS)
async def saver(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    settings = load_settings({"DATA_DIR": str(tmp_path), "CONVERSATIONS": request.param}, None)
    async with checkpointer_for(settings) as opened:
        assert isinstance(opened, FileSaver if request.param == "sqlite" else MemorySaver)
        yield opened


async def test_a_conversation_goes_on_and_only_its_last_state_is_kept(saver: BaseCheckpointSaver[Any]) -> None:
    graph = graph_with(saver)
    for turn in range(4):
        said = await ask(graph, "a", f"question {turn}")
        await settle(graph, "a")
        assert len(said) == 2 * (turn + 1)
        assert await states(saver, "a") == [""]
    assert await ask(graph, "b", "hello") == ["hello", "seen 1"]


async def test_what_waits_for_an_answer_is_kept_whole_and_trimmed_once_it_is_answered(
    saver: BaseCheckpointSaver[Any],
) -> None:
    graph = graph_with(saver)
    await ask(graph, "a", "hello")
    await settle(graph, "a")
    await ask(graph, "a", "ask")
    await settle(graph, "a", for_good=True)
    assert len(await states(saver, "a")) > 1
    snapshot = await graph.aget_state(thread("a"))
    assert [pending.value for pending in snapshot.interrupts] == ["which?"]

    said = await ask(graph, "a", Command(resume="this one"))
    assert said == ["hello", "seen 1", "ask", "answered this one"]
    await settle(graph, "a")
    assert await states(saver, "a") == [""]
    assert len(await ask(graph, "a", "again")) == 6
    await settle(graph, "a", for_good=True)
    assert await states(saver, "a") == []


@pytest.mark.parametrize(("delegated", "left"), [(True, []), (False, [""])])
async def test_what_was_delegated_is_forgotten_when_it_has_ended(
    saver: BaseCheckpointSaver[Any], delegated: bool, left: list[str]
) -> None:
    graph = graph_with(saver)
    run = BaseLangGraphAgent("argocd", lambda: graph).run(
        "hello", RequestContext("a", "t", "trace", delegated=delegated)
    )
    assert [event async for event in run.events()]
    assert await states(saver, "a") == left


async def test_conversations_are_forgotten_by_name(saver: BaseCheckpointSaver[Any]) -> None:
    graph = graph_with(saver)
    for name in ("a", "b", "c"):
        await ask(graph, name, "hello")
    await saver.forget(["a", "c", "nobody"])  # type: ignore[attr-defined]
    assert [len(await ask(graph, name, "hello")) for name in ("a", "b", "c")] == [2, 4, 2]


async def test_thirty_two_conversations_at_once_stay_apart(saver: BaseCheckpointSaver[Any]) -> None:
    graph = graph_with(saver)

    async def talk(name: str) -> list[str]:
        for turn in range(3):
            said = await ask(graph, name, f"{name} {turn}")
            await settle(graph, name)
        return said

    for number, said in enumerate(await asyncio.gather(*(talk(f"c{number}") for number in range(32)))):
        assert said[::2] == [f"c{number} {turn}" for turn in range(3)]


async def test_what_waits_still_waits_after_a_restart(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, None)
    async with checkpointer_for(settings) as saver:
        await ask(graph_with(saver), "a", "hello")
        await ask(graph_with(saver), "a", "ask")
    async with checkpointer_for(settings) as saver:
        said = await ask(graph_with(saver), "a", Command(resume="that one"))
    assert said == ["hello", "seen 1", "ask", "answered that one"]


async def test_in_memory_the_conversation_that_was_quiet_for_longest_goes() -> None:
    saver = MemorySaver(3)
    graph = graph_with(saver)
    for name in ("a", "b", "c", "a", "d"):
        await ask(graph, name, "hello")
    assert [bool(await states(saver, name)) for name in ("a", "b", "c", "d")] == [True, False, True, True]


async def test_who_has_which(tmp_path: Path) -> None:
    async with checkpointer_for(load_settings({"DATA_DIR": str(tmp_path), "LANGGRAPH_DEV": "1"}, None)) as none:
        assert none is None
    async with checkpointer_for(load_settings({"DATA_DIR": str(tmp_path)}, None), "argocd") as agents:
        assert isinstance(agents, MemorySaver)
    assert not (tmp_path / "conversations.db").exists()


async def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "conversations.db"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(SettingsError) as refused:
        await checkpointer_for(load_settings({"DATA_DIR": str(tmp_path)}, None)).__aenter__()
    assert str(path) in str(refused.value)
    assert "CONVERSATIONS=memory" in str(refused.value)
