"""Conversations: remembered across restarts, trimmed when a run has ended, bounded in memory."""

from __future__ import annotations

import asyncio
import gc
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import time
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from ai_platform_engineering.compat.checkpoint_sqlite import first_id_since
from ai_platform_engineering.events import FinalResult, InputRequired
from ai_platform_engineering.forms.answers import Submitted
from ai_platform_engineering.graphs.agent_graph import Graph, agent_graph
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.settings import SettingsError, load_settings
from ai_platform_engineering.storage.checkpoints import active_conversations
from ai_platform_engineering.storage.data_files import check_data_files
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent, Resumption
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.checkpointer import (
    ConversationSaver,
    FallbackSaver,
    MemorySaver,
    checkpointer_for,
    forget,
    release,
    settle,
)
from tests.servers import ROOT

KINDS: dict[str, tuple[str, str, type]] = {
    "file": ("supervisor", "sqlite", FallbackSaver),
    "memory": ("supervisor", "memory", MemorySaver),
    "agent": ("argocd", "sqlite", FallbackSaver),
}


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


def graph_with(saver: BaseCheckpointSaver[Any] | None) -> Graph:
    """Each question takes three steps, one of them a graph of its own; "ask" waits for an answer there."""

    def inner(state: State) -> dict[str, Any]:
        if state["messages"][-1].text == "ask":
            answer = interrupt("which?")
            if answer == "fail":
                raise ZeroDivisionError
            return {"messages": [HumanMessage(f"answered {answer}")]}
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


@tool
def ask_person() -> str:
    """Asks a person."""
    return str(interrupt("which?"))


def agent_with(saver: BaseCheckpointSaver[Any]) -> Graph:
    """On the question "ask" it asks a person; a history with an open call is refused, as real models do."""

    def part(cue: ModelInput) -> Turn:
        calls = {call["id"] for said in cue.messages if isinstance(said, AIMessage) for call in said.tool_calls}
        assert calls == {said.tool_call_id for said in cue.messages if isinstance(said, ToolMessage)}
        return Turn("", [("ask_person", {})]) if cue.question == "ask" and not cue.turn else Turn("Four.")

    return agent_graph(
        load_settings({}, None),
        ScriptedChatModel(script=part),
        [ask_person],
        "You answer.",
        name="argocd",
        checkpointer=saver,
    )


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


async def ask(graph: Graph, name: str, text: str | Command[Any]) -> list[str]:
    given = text if isinstance(text, Command) else {"messages": [HumanMessage(text)]}
    state = await graph.ainvoke(given, thread(name), durability="exit")
    return [str(message.text) for message in state["messages"]]


async def states(saver: BaseCheckpointSaver[Any], name: str) -> list[str]:
    """The namespaces of what is kept of a conversation."""
    return [found.config["configurable"]["checkpoint_ns"] async for found in saver.alist(thread(name))]


def modes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}


@pytest.fixture(params=KINDS)
async def saver(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BaseCheckpointSaver[Any]]:
    name, conversations, kind = KINDS[request.param]
    settings = load_settings({"DATA_DIR": str(tmp_path), "CONVERSATIONS": conversations}, None)
    async with checkpointer_for(settings, name) as opened:
        assert type(opened) is kind
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
    await settle(graph, "a")
    assert len(await states(saver, "a")) > 1
    snapshot = await graph.aget_state(thread("a"))
    assert [pending.value for pending in snapshot.interrupts] == ["which?"]

    said = await ask(graph, "a", Command(resume="this one"))
    assert said == ["hello", "seen 1", "ask", "answered this one"]
    await settle(graph, "a")
    assert await states(saver, "a") == [""]
    assert len(await ask(graph, "a", "again")) == 6
    await forget(graph, "a")
    assert await states(saver, "a") == []


@pytest.mark.parametrize(("delegated", "left"), [(True, []), (False, [""])])
async def test_what_was_delegated_is_forgotten_when_it_has_ended(
    saver: BaseCheckpointSaver[Any], delegated: bool, left: list[str]
) -> None:
    graph = graph_with(saver)
    run = BaseLangGraphAgent("argocd", lambda _: graph).run(
        "hello", RequestContext("a", "t", "trace", delegated=delegated)
    )
    assert [event async for event in run.events()]
    assert await states(saver, "a") == left


async def test_conversations_are_forgotten_by_name(saver: BaseCheckpointSaver[Any]) -> None:
    graph = graph_with(saver)
    for name in ("a", "b", "c"):
        await ask(graph, name, "hello")
    await saver.forget(["a", "c", "unknown"])  # type: ignore[attr-defined]
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


@pytest.mark.parametrize("name", ["supervisor", "argocd"])
async def test_what_waits_still_waits_after_a_restart(tmp_path: Path, name: str) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, None)
    async with checkpointer_for(settings, name) as saver:
        graph = graph_with(saver)
        for text in ("hello", "ask"):
            await ask(graph, "a", text)
            await settle(graph, "a")
    for _ in range(2):
        async with checkpointer_for(settings, name) as saver:
            snapshot = await graph_with(saver).aget_state(thread("a"))
            assert [pending.value for pending in snapshot.interrupts] == ["which?"]
    async with checkpointer_for(settings, name) as saver:
        said = await ask(graph_with(saver), "a", Command(resume="that one"))
    assert said == ["hello", "seen 1", "ask", "answered that one"]


PARKED_AND_KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.checkpointer import checkpointer_for, settle
from tests.utils.test_checkpointer import ask, graph_with

async def main():
    async with checkpointer_for(load_settings({"DATA_DIR": sys.argv[1]}, None), sys.argv[2]) as saver:
        graph = graph_with(saver)
        await ask(graph, "a", "hello")
        await settle(graph, "a")
        await ask(graph, "a", "ask")
        await settle(graph, "a")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.parametrize("name", ["supervisor", "argocd"])
async def test_what_waits_still_waits_after_a_kill(tmp_path: Path, name: str) -> None:
    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PARKED_AND_KILLED, tmp_path, name],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    async with checkpointer_for(load_settings({"DATA_DIR": str(tmp_path)}, None), name) as saver:
        said = await ask(graph_with(saver), "a", Command(resume="that one"))
    assert said == ["hello", "seen 1", "ask", "answered that one"]


async def test_the_conversation_of_a_delegation_is_in_the_file_until_it_has_ended(tmp_path: Path) -> None:
    def stored() -> set[str]:
        with closing(sqlite3.connect(tmp_path / "conversations-argocd.db")) as reader:
            tables = ("checkpoints", "writes")
            return {name for table in tables for (name,) in reader.execute(f"SELECT thread_id FROM {table}")}  # noqa: S608

    async with checkpointer_for(load_settings({"DATA_DIR": str(tmp_path)}, None), "argocd") as saver:
        assert saver is not None
        agent = BaseLangGraphAgent("argocd", lambda _: agent_with(saver))
        for question, ending in (("how many?", FinalResult), ("ask", InputRequired)):
            run = agent.run(question, RequestContext("c", "t", "trace", delegated=True))
            events = [event async for event in run.events()]
            assert isinstance(events[-1], ending)
            assert stored() == ({"c"} if ending is InputRequired else set())
        assert isinstance(events[-1], InputRequired)
        resumed = Resumption(events[-1].forms[0], Submitted({"response": "this"}), events)
        run = agent.run(resumed, RequestContext("c", "t", "trace", delegated=True))
        assert isinstance([event async for event in run.events()][-1], FinalResult)
        assert stored() == set()


async def test_agents_and_the_supervisor_share_a_directory(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, None)
    async with AsyncExitStack() as open_savers:
        names = ("supervisor", "argocd", "jira")
        savers = [await open_savers.enter_async_context(checkpointer_for(settings, name)) for name in names]
        graphs = [graph_with(saver) for saver in savers]
        for name, graph in zip(names, graphs, strict=True):
            await ask(graph, "a", name)
            await ask(graph, "a", "ask")
            await settle(graph, "a")
        for name, graph in zip(names, graphs, strict=True):
            assert await ask(graph, "a", Command(resume=name)) == [name, "seen 1", "ask", f"answered {name}"]
            await settle(graph, "a")
    files = ("conversations.db", "conversations-argocd.db", "conversations-jira.db")
    assert {file: mode for file, mode in modes(tmp_path).items() if file.endswith(".db")} == dict.fromkeys(files, 0o600)


@pytest.mark.long
async def test_conversations_that_wait_take_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The last few are also in memory, for the case that the file fails.
    monkeypatch.setattr(active_conversations, "_MAX_CONVERSATIONS", 16)
    async with checkpointer_for(load_settings({"DATA_DIR": str(tmp_path)}, None), "argocd") as saver:
        graph = graph_with(saver)

        async def park(first: int, last: int) -> int:
            for number in range(first, last):
                await ask(graph, f"c{number}", "ask")
                await settle(graph, f"c{number}")
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            used = [await park(0, 20), await park(20, 70), await park(70, 120)]
        finally:
            tracemalloc.stop()
        # A dictionary that is resized once is no growth with each conversation.
        assert min(after - before for before, after in itertools.pairwise(used)) < 50 * 500
        assert await ask(graph, "c7", Command(resume="yes")) == ["ask", "answered yes"]


async def test_the_event_loop_continues_while_another_process_writes(tmp_path: Path) -> None:
    settings = load_settings({"DATA_DIR": str(tmp_path)}, env_file=None)
    async with checkpointer_for(settings) as saver:
        assert saver is not None
        graph = graph_with(saver)
        await ask(graph, "a", "one")
        with closing(sqlite3.connect(tmp_path / "conversations.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            asking = [asyncio.create_task(ask(graph, name, "two")) for name in ("a", "b")]
            done, _ = await asyncio.wait(asking, timeout=0.1)
            assert not done
            # A canceled call does not affect the others.
            asking.pop().cancel()
            other.execute("COMMIT")
        assert len(await asyncio.wait_for(asking[0], 90)) == 4
        assert (await ask(graph, "b", "three"))[-2] == "three"


async def test_a_dropped_form_makes_room_for_a_new_question(saver: BaseCheckpointSaver[Any]) -> None:
    graph = agent_with(saver)
    await ask(graph, "a", "ask")
    await settle(graph, "a")
    assert (await graph.aget_state(thread("a"))).interrupts

    assert isinstance(saver, ConversationSaver)
    await saver.release("a", False)
    snapshot = await graph.aget_state(thread("a"))
    assert not snapshot.interrupts
    assert [str(said.text) for said in snapshot.values["messages"]] == ["ask", ""]
    assert await saver.keep_latest("a")
    said = await ask(graph, "a", "and now?")
    assert (said[0], said[2:]) == ("ask", ["and now?", "Four."])
    await settle(graph, "a")
    assert await states(saver, "a") == [""]


@pytest.mark.parametrize(("for_good", "left"), [(True, []), (False, [""])])
async def test_a_run_that_ends_without_the_answer_it_asked_for_leaves_nothing_waiting(
    saver: BaseCheckpointSaver[Any], for_good: bool, left: list[str]
) -> None:
    graph = graph_with(saver)
    await ask(graph, "a", "ask")
    await settle(graph, "a")
    with pytest.raises(ZeroDivisionError):
        await ask(graph, "a", Command(resume="fail"))
    await settle(graph, "a")
    assert len(await states(saver, "a")) > 1, "what LangGraph kept does not tell failing from waiting"
    await release(graph, "a", for_good=for_good)
    assert await states(saver, "a") == left
    await release(graph, "unknown", for_good=for_good)


@pytest.mark.parametrize(("days", "most", "left"), [("30", "10", "bc"), ("0", "10", "abc"), ("30", "1", "c")])
async def test_without_kept_tasks_conversations_go_by_their_own_age(
    tmp_path: Path, days: str, most: str, left: str
) -> None:
    environ = {"DATA_DIR": str(tmp_path), "EVENT_LOG_MAX_AGE_DAYS": days, "EVENT_LOG_MAX_TASKS": most}
    async with checkpointer_for(load_settings(environ, None)) as saver:
        for name in "abc":
            await ask(graph_with(saver), name, "hello")
    with closing(sqlite3.connect(tmp_path / "conversations.db")) as connection, connection:
        old = first_id_since(time.time_ns() - 31 * 86_400 * 10**9)
        for table in ("checkpoints", "writes"):
            connection.execute(f"UPDATE {table} SET checkpoint_id = ? WHERE thread_id = 'a'", (old,))  # noqa: S608
    for kind, expected in (("sqlite", "abc"), ("memory", left)):
        async with checkpointer_for(load_settings({**environ, "EVENT_LOG": kind}, None)) as saver:
            assert "".join([name for name in "abc" if await states(saver, name)]) == expected


async def test_in_memory_the_conversation_that_was_idle_longest_is_deleted() -> None:
    saver = MemorySaver(3)
    graph = graph_with(saver)
    for name in ("a", "b", "c", "a", "d"):
        await ask(graph, name, "hello")
    assert [bool(await states(saver, name)) for name in ("a", "b", "c", "d")] == [True, False, True, True]


async def test_in_memory_what_waits_is_not_among_those_that_go() -> None:
    saver = MemorySaver(2)
    graph = graph_with(saver)
    for name in ("waits", "answered"):
        await ask(graph, name, "ask")
        await settle(graph, name)
    for number in range(5):
        await ask(graph, f"c{number}", "hello")
    assert await ask(graph, "answered", Command(resume="this")) == ["ask", "answered this"]
    await settle(graph, "answered")
    for number in range(5):
        await ask(graph, f"c{number}", "hello")
    kept = {found.config["configurable"]["thread_id"] async for found in saver.alist(None)}
    assert kept == {"waits", "c3", "c4"}


async def test_who_has_which(tmp_path: Path) -> None:
    async with checkpointer_for(load_settings({"DATA_DIR": str(tmp_path), "LANGGRAPH_DEV": "1"}, None)) as none:
        assert none is None
    for switched_off in ("EVENT_LOG", "CONVERSATIONS"):
        settings = load_settings({"DATA_DIR": str(tmp_path), switched_off: "memory"}, None)
        async with checkpointer_for(settings, "argocd") as agents:
            assert type(agents) is MemorySaver
        check_data_files(load_settings({**settings.environ, "EVENT_LOG": "memory"}, None), "argocd")
    assert modes(tmp_path) == {}


@pytest.mark.parametrize(("name", "file"), [("supervisor", "conversations.db"), ("jira", "conversations-jira.db")])
async def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, name: str, file: str) -> None:
    path = tmp_path / file
    path.write_bytes(b"no database" * 1000)
    settings = load_settings({"DATA_DIR": str(tmp_path), "REQUIRE_PERSISTENCE": "true"}, None)
    with pytest.raises(SettingsError) as refused:
        await checkpointer_for(settings, name).__aenter__()
    assert str(path) in str(refused.value)
    assert "CONVERSATIONS=memory" in str(refused.value)
    with pytest.raises(SettingsError, match=file):
        check_data_files(settings, name)
