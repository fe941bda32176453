"""Checkpoints of a run that another process has claimed since: no store takes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.checkpoints.fencing import FencedRun
from ai_platform_engineering.storage.event_log.event_log import EventLog, SupersededError
from ai_platform_engineering.utils.a2a_common.server.log_maintenance import event_log
from ai_platform_engineering.utils.checkpointer import FallbackSaver, checkpointer_for
from tests.services.postgres import PostgresServer, new_database
from tests.storage.event_log.test_log_contract import Writer

pytest_plugins = ("tests.services.fixtures",)

# Conversations with the log in one database, apart from it in another database, and in a file.
PLACES = (
    pytest.param("together", marks=pytest.mark.process),
    pytest.param("apart", marks=pytest.mark.process),
    "sqlite",
)


@pytest.fixture(params=PLACES)
def environ(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, str]]:
    files = {"DATA_DIR": str(tmp_path)}
    if request.param == "sqlite":
        yield files
        return
    postgres: PostgresServer = request.getfixturevalue("postgres")
    with new_database(postgres.address()) as address, new_database(postgres.address()) as other:
        own = {"EVENT_LOG_POSTGRES_DSN": other} if request.param == "apart" else {}
        yield files | {"EVENT_LOG": "postgres", "LANGGRAPH_CHECKPOINT_POSTGRES_DSN": address} | own


@pytest.fixture
async def log(environ: dict[str, str]) -> AsyncIterator[EventLog]:
    async with event_log(load_settings(environ, None)).opened() as opened:
        yield opened


@pytest.fixture
async def saver(environ: dict[str, str], log: EventLog) -> AsyncIterator[FallbackSaver]:
    async with checkpointer_for(load_settings(environ, None), fence=log.check_epoch) as opened:
        assert isinstance(opened, FallbackSaver)
        assert opened.problem is None
        yield opened


def run_of(epoch: int, thread: str = "c") -> RunnableConfig:
    return {"configurable": {"thread_id": thread, **FencedRun("t", epoch).configurable()}}


def graph_of(saver: FallbackSaver, entered: asyncio.Event, may_go_on: asyncio.Event) -> Any:
    """A nested graph whose second step waits."""

    async def answer(_: MessagesState) -> dict[str, list[AnyMessage]]:
        return {"messages": [AIMessage("looked")]}

    async def wait(_: MessagesState) -> dict[str, list[AnyMessage]]:
        entered.set()
        await may_go_on.wait()
        return {"messages": [AIMessage("done")]}

    inner = StateGraph(MessagesState)
    inner.add_node("look", answer)
    inner.add_node("wait", wait)
    inner.add_edge(START, "look")
    inner.add_edge("look", "wait")
    inner.add_edge("wait", END)
    outer = StateGraph(MessagesState)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    return outer.compile(checkpointer=saver)


async def checkpoints(saver: FallbackSaver, thread: str = "c") -> list[tuple[str, int]]:
    found = [each async for each in saver.alist({"configurable": {"thread_id": thread}})]
    return [(each.checkpoint["id"], len(each.pending_writes or ())) for each in found]


async def test_a_run_that_was_claimed_since_stores_nothing_more(log: EventLog, saver: FallbackSaver) -> None:
    await Writer(log).begin()
    claim = await log.claim("t", 0)
    entered, may_go_on = asyncio.Event(), asyncio.Event()
    graph = graph_of(saver, entered, may_go_on)
    question = {"messages": [HumanMessage("hello")]}
    running = asyncio.create_task(graph.ainvoke(question, run_of(claim.epoch), durability="sync"))
    await asyncio.wait_for(entered.wait(), 90)
    second = await log.claim("t", 0)
    before = await checkpoints(saver)
    assert len(before) >= 2
    may_go_on.set()
    with pytest.raises(SupersededError):
        await asyncio.wait_for(running, 90)
    assert await checkpoints(saver) == before
    assert saver.problem is None

    resumed = await graph.ainvoke(None, run_of(second.epoch), durability="sync")
    assert [message.content for message in resumed["messages"]] == ["hello", "looked", "done"]


async def test_a_run_without_a_claim_is_not_checked(log: EventLog, saver: FallbackSaver) -> None:
    graph = graph_of(saver, asyncio.Event(), done := asyncio.Event())
    done.set()
    question = {"messages": [HumanMessage("hello")]}
    await graph.ainvoke(question, {"configurable": {"thread_id": "free"}}, durability="sync")
    assert len(await checkpoints(saver, "free")) >= 2


@pytest.mark.long
@pytest.mark.parametrize("environ", PLACES[:1], indirect=True)
async def test_a_copy_in_memory_of_a_run_that_was_claimed_since_is_dropped(
    environ: dict[str, str], log: EventLog, postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    """The store is away while the run goes on. When it is back, another process claims the run first."""
    is_claimed = asyncio.Event()

    async def check_later(task_id: str, epoch: int) -> None:
        await is_claimed.wait()
        await log.check_epoch(task_id, epoch)

    await Writer(log).begin()
    claim = await log.claim("t", 0)
    entered, may_go_on = asyncio.Event(), asyncio.Event()
    question = {"messages": [HumanMessage("hello")]}
    async with checkpointer_for(load_settings(environ, None), fence=check_later) as saver:
        assert isinstance(saver, FallbackSaver)
        graph = graph_of(saver, entered, may_go_on)
        running = asyncio.create_task(graph.ainvoke(question, run_of(claim.epoch), durability="sync"))
        await asyncio.wait_for(entered.wait(), 90)
        before = await checkpoints(saver)
        await asyncio.to_thread(postgres.stop)
        try:
            may_go_on.set()
            await asyncio.wait_for(running, 90)
            assert saver.problem is not None
            assert await checkpoints(saver) != before
        finally:
            await asyncio.to_thread(postgres.start)
        await asyncio.wait_for(log.claim("t", 0), 90)
        is_claimed.set()
        async with asyncio.timeout(90):
            while saver.problem is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert await checkpoints(saver) == before
    assert "Conversation c was continued by another process" in caplog.text
