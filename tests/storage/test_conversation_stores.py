"""The stores of conversations, all through one suite, with real servers."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.types import Command
from psycopg import AsyncConnection

from ai_platform_engineering.graphs.agent_graph import Graph
from ai_platform_engineering.settings import Settings, SettingsError, load_settings
from ai_platform_engineering.storage.checkpoints import server_saver
from ai_platform_engineering.utils.checkpointer import FallbackSaver, checkpointer_for, release, settle
from tests.storage.stores import SERVERS, WRONG, Store, store_of, with_wrong_password
from tests.utils.test_checkpointer import agent_with, ask, graph_with, states, thread

pytest_plugins = ("tests.services.fixtures",)

KINDS = ("sqlite", "memory", *SERVERS)
PERSISTENT = ("sqlite", *SERVERS)
RETURN_SECONDS = 30


def only(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("store", kinds, indirect=True)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with store_of(request.param, tmp_path, request) as found:
        yield found


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Any]:
    async with checkpointer_for(settings) as saver:
        assert getattr(saver, "problem", None) is None
        yield saver


@pytest.fixture
async def saver(store: Store) -> AsyncIterator[Any]:
    async with opened(store.settings()) as found:
        yield found


async def talk(graph: Graph, name: str, text: str | Command[Any]) -> list[str]:
    said = await ask(graph, name, text)
    await settle(graph, name)
    return said


async def until_stored(saver: FallbackSaver) -> None:
    async with asyncio.timeout(RETURN_SECONDS):
        while saver.problem is not None:  # noqa: ASYNC110 - what operators do, too
            await asyncio.sleep(0.05)


async def test_conversations_continue_apart_and_keep_their_last_state_only(saver: Any, store: Store) -> None:
    graph = graph_with(saver)
    one, other = store.thread("one"), store.thread("ONE")
    for turn in range(3):
        assert len(await talk(graph, one, f"question {turn}")) == 2 * (turn + 1)
        assert await states(saver, one) == [""]
    assert await talk(graph, other, "hello") == ["hello", "seen 1"]
    assert (await talk(graph, one, "and now?"))[:2] == ["question 0", "seen 1"]


async def test_an_open_form_is_kept_and_answered(saver: Any, store: Store) -> None:
    graph = graph_with(saver)
    name = store.thread("form")
    await talk(graph, name, "hello")
    await talk(graph, name, "ask")
    assert len(await states(saver, name)) > 1
    assert [pending.value for pending in (await graph.aget_state(thread(name))).interrupts] == ["which?"]
    assert (await talk(graph, name, Command(resume="this one")))[-1] == "answered this one"
    assert await states(saver, name) == [""]


async def test_a_released_form_is_gone_and_the_conversation_continues(saver: Any, store: Store) -> None:
    graph = graph_with(saver)
    name = store.thread("form")
    await talk(graph, name, "hello")
    await talk(graph, name, "ask")
    await release(graph, name)
    assert (await graph.aget_state(thread(name))).interrupts == ()
    assert await states(saver, name) == [""]
    assert (await talk(graph, name, "again"))[:3] == ["hello", "seen 1", "ask"]
    await release(graph, name, for_good=True)
    assert await states(saver, name) == []


async def test_forgotten_conversations_are_gone_and_the_others_stay(saver: Any, store: Store) -> None:
    graph = graph_with(saver)
    names = [store.thread(name) for name in ("a", "b", "c")]
    for name in names:
        await talk(graph, name, "hello")
    await talk(graph, names[0], "ask")
    await saver.forget([names[0], names[2], store.thread("unknown")])
    assert [len(await ask(graph, name, "hello")) for name in names] == [2, 4, 2]


async def test_many_conversations_at_once_stay_apart(saver: Any, store: Store) -> None:
    graph = graph_with(saver)

    async def conversation(name: str) -> list[str]:
        for turn in range(3):
            said = await talk(graph, name, f"{name} {turn}")
        return said

    names = [store.thread(f"c{number}") for number in range(16)]
    for name, said in zip(names, await asyncio.gather(*map(conversation, names)), strict=True):
        assert said[::2] == [f"{name} {turn}" for turn in range(3)]


@only(*PERSISTENT)
async def test_another_process_continues_a_conversation_and_answers_its_form(store: Store) -> None:
    name, form = store.thread("a"), store.thread("form")
    async with opened(store.settings()) as saver:
        graph = graph_with(saver)
        await talk(graph, name, "hello")
        await talk(graph, form, "ask")
    async with opened(store.settings()) as saver:
        graph = graph_with(saver)
        assert await talk(graph, name, "again") == ["hello", "seen 1", "again", "seen 3"]
        assert await talk(graph, form, Command(resume="that one")) == ["ask", "answered that one"]
    async with opened(store.settings()) as saver:
        assert await states(saver, form) == [""]


@only(*PERSISTENT)
async def test_messages_and_values_are_read_as_they_were_written(store: Store) -> None:
    """Compared with LangGraph's saver in memory, whose serializer is the product's."""
    name = store.thread("values")
    call = {"name": "list_pods", "args": {"namespace": "a\u2028b", "limit": 3}, "id": "call-1", "type": "tool_call"}
    values = {
        "messages": [
            HumanMessage("Größe? \U0001f600 \u0000 <&>", id="1"),
            AIMessage([{"type": "text", "text": "one"}], tool_calls=[call], id="2", usage_metadata=None),
            ToolMessage("x" * 100_000, tool_call_id="call-1", id="3", artifact={"rows": [1, 2.5, None, True]}),
        ],
        "grants": [{"tool": "delete", "args": {"name": "x"}}],
        "when": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        "empty": [],
        "text": "plain",
        "number": 7,
        "raw": b"\x00\xff",
    }
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = values
    checkpoint["channel_versions"] = dict.fromkeys(values, f"{1:032}.0.5")
    place: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
    async with opened(store.settings()) as saver:
        stored = await saver.aput(place, checkpoint, {"source": "loop", "step": 1}, checkpoint["channel_versions"])
        await saver.aput_writes(stored, [("messages", [HumanMessage("pending", id="4")]), ("number", 8)], "task")
    async with opened(store.settings()) as saver:
        found = await saver.aget_tuple(place)
    assert found.checkpoint["channel_values"] == values
    assert found.checkpoint["channel_versions"] == checkpoint["channel_versions"]
    assert found.pending_writes == [("task", "messages", [HumanMessage("pending", id="4")]), ("task", "number", 8)]


@only(*PERSISTENT)
async def test_an_agent_with_tools_asks_and_goes_on_after_a_restart(store: Store) -> None:
    name = store.thread("agent")
    async with opened(store.settings()) as saver:
        await talk(agent_with(saver), name, "ask")
    async with opened(store.settings()) as saver:
        said = await talk(agent_with(saver), name, Command(resume="this"))
        assert said[-2:] == ["this", "Four."]
        assert (await talk(agent_with(saver), name, "and?"))[0] == "ask"


@only(*PERSISTENT)
async def test_several_processes_start_at_once_on_an_empty_store(store: Store) -> None:
    async with AsyncExitStack() as stack:
        savers = await asyncio.gather(*(stack.enter_async_context(opened(store.settings())) for _ in range(4)))
        for number, saver in enumerate(savers):
            assert len(await talk(graph_with(saver), store.thread("a"), "hello")) == 2 * (number + 1)


async def test_idle_conversations_expire(store: Store) -> None:
    name, other = store.thread("old"), store.thread("new")
    async with opened(store.settings(LANGGRAPH_CHECKPOINT_TTL_MINUTES="0.05")) as saver:
        graph = graph_with(saver)
        await talk(graph, name, "hello")
        deadline = time.monotonic() + RETURN_SECONDS
        while await saver.aget_tuple({"configurable": {"thread_id": name, "checkpoint_ns": ""}}) is not None:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.2)
        assert await talk(graph, other, "hello") == ["hello", "seen 1"]
    # Another duration, and none, fit the store as well.
    async with opened(store.settings(LANGGRAPH_CHECKPOINT_TTL_MINUTES="60")) as saver:
        await talk(graph_with(saver), other, "hello")
    async with opened(store.settings()) as saver:
        await talk(graph_with(saver), other, "hello")


@only(*SERVERS)
async def test_a_run_goes_on_when_the_server_stops_and_is_stored_when_it_returns(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    name, begun, other = store.thread("a"), store.thread("begun"), store.thread("other")
    async with opened(store.settings()) as saver:
        graph = graph_with(saver)
        await talk(graph, name, "hello")
        await talk(graph, other, "first")
        # The state of a run that has begun: read, and not written yet.
        await graph.aget_state(thread(name))
        with store.stopped() as start, caplog.at_level(logging.WARNING):
            assert await talk(graph, name, "again") == ["hello", "seen 1", "again", "seen 3"]
            assert "cannot be used" in str(saver.problem)
            assert await talk(graph, begun, "ask") == ["ask"]
            # Its history is in the server only.
            assert await talk(graph, other, "second") == ["second", "seen 1"]
            assert f"Conversation {other} continues without its earlier messages" in caplog.text
            assert caplog.text.count("CONVERSATIONS ARE NOT STORED") == 1
            await asyncio.to_thread(start)
            await until_stored(saver)
        assert "can be used again; 3 conversations were written to it" in caplog.text
        assert len(await talk(graph, name, "third")) == 6
    async with opened(store.settings()) as saver:
        graph = graph_with(saver)
        assert await talk(graph, begun, Command(resume="this")) == ["ask", "answered this"]
        assert (await talk(graph, name, "fourth"))[:3] == ["hello", "seen 1", "again"]
        assert (await talk(graph, other, "third"))[:4] == ["first", "seen 1", "second", "seen 1"]


@only(*SERVERS)
async def test_what_is_forgotten_or_released_meanwhile_is_so_in_the_store_later(store: Store) -> None:
    gone, form = store.thread("gone"), store.thread("form")
    async with opened(store.settings()) as saver:
        graph = graph_with(saver)
        await talk(graph, gone, "hello")
        await talk(graph, form, "ask")
        with store.stopped() as start:
            await saver.forget([gone])
            await release(graph, form)
            assert (await graph.aget_state(thread(form))).interrupts == ()
            await asyncio.to_thread(start)
            await until_stored(saver)
    async with opened(store.settings()) as saver:
        assert await states(saver, gone) == []
        assert (await graph_with(saver).aget_state(thread(form))).interrupts == ()
        assert (await talk(graph_with(saver), form, "hello"))[0] == "ask"


@only(*SERVERS)
async def test_without_its_server_the_start_is_degraded_or_refused(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    name = store.thread("a")
    with store.stopped() as start:
        with pytest.raises(SettingsError, match="REQUIRE_PERSISTENCE=true does not allow conversations in memory"):
            await checkpointer_for(store.settings(REQUIRE_PERSISTENCE="true")).__aenter__()
        async with checkpointer_for(store.settings()) as saver:
            assert isinstance(saver, FallbackSaver)
            assert "CONVERSATIONS ARE NOT STORED" in caplog.text
            await talk(graph_with(saver), name, "hello")
            await asyncio.to_thread(start)
            await until_stored(saver)
    async with opened(store.settings()) as saver:
        assert len(await talk(graph_with(saver), name, "again")) == 4


@only(*SERVERS)
async def test_a_wrong_password_is_reported_without_it(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    settings = load_settings(with_wrong_password(store), None)
    async with checkpointer_for(settings) as saver:
        assert isinstance(saver, FallbackSaver)
        assert saver.problem is not None
        assert WRONG not in saver.problem + caplog.text + repr(settings) + repr(saver.__dict__)


async def test_a_broken_file_is_replaced_by_memory_until_it_is_moved_away(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "conversations.db"
    path.write_bytes(b"no database" * 1000)
    settings = load_settings({"DATA_DIR": str(tmp_path)}, None)
    async with checkpointer_for(settings) as saver:
        assert isinstance(saver, FallbackSaver)
        assert saver.problem == ("Conversations are in memory, because SQLite cannot be used: file is not a database.")
        assert str(path) in caplog.text
        graph = graph_with(saver)
        await talk(graph, "a", "hello")
        path.rename(tmp_path / "broken.db")
        await until_stored(saver)
        await talk(graph, "a", "again")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("DROP TABLE checkpoints")
        assert len(await talk(graph, "b", "hello")) == 2
        assert "cannot be used to store conversations: no such table: checkpoints." in caplog.text
        await until_stored(saver)
        assert len(await talk(graph, "b", "again")) == 4
    (tmp_path / "broken.db").rename(path)
    with pytest.raises(SettingsError, match="REQUIRE_PERSISTENCE"):
        await checkpointer_for(load_settings({**settings.environ, "REQUIRE_PERSISTENCE": "1"}, None)).__aenter__()


@only("mongodb")
async def test_a_conversation_that_the_store_does_not_take_stays_in_memory_alone(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """A document of MongoDB has at most 16 MB."""
    large, other = store.thread("large"), store.thread("other")
    async with opened(store.settings()) as saver:
        graph = graph_with(saver)
        assert len(await talk(graph, large, "x" * 17_000_000)) == 2
        await until_stored(saver)
        assert f"Conversation {large} stays in memory, it cannot be stored" in caplog.text
        assert len(await talk(graph, large, "again")) == 4
        await talk(graph, other, "hello")
        assert saver.problem is None
        await saver.forget([large])
    async with opened(store.settings()) as saver:
        assert [await states(saver, name) for name in (large, other)] == [[], [""]]


@only("redis")
async def test_a_store_that_takes_nothing_stays_unused(store: Store) -> None:
    from redis.asyncio import Redis

    from tests.services.redis import PASSWORD

    port: Any = getattr(store.server, "port", None)
    name = store.thread("a")
    async with Redis(port=port, password=PASSWORD) as client, opened(store.settings()) as saver:
        graph = graph_with(saver)
        try:
            # Writes are refused, reads are not.
            await client.config_set("maxmemory", "1")
            await talk(graph, name, "hello")
            await asyncio.sleep(1)
            assert "maxmemory" in str(saver.problem)
            assert len(await talk(graph, name, "again")) == 4
        finally:
            await client.config_set("maxmemory", "0")
        await until_stored(saver)
    async with opened(store.settings()) as saver:
        assert len(await talk(graph_with(saver), name, "third")) == 6


@asynccontextmanager
async def hanging(store: Store) -> AsyncIterator[None]:
    """The server accepts connections, and does not answer or does not write."""
    async with AsyncExitStack() as stack:
        match store.kind:
            case "postgres":
                connection = await AsyncConnection.connect(store.environ["LANGGRAPH_CHECKPOINT_POSTGRES_DSN"])
                await stack.enter_async_context(connection)
                await connection.execute("LOCK TABLE checkpoints, checkpoint_writes IN ACCESS EXCLUSIVE MODE")
            case "mongodb":
                from pymongo import MongoClient

                client: Any = stack.enter_context(MongoClient(store.environ["LANGGRAPH_CHECKPOINT_MONGODB_URI"]))
                client.admin.command("fsync", lock=True)
                stack.callback(client.admin.command, "fsyncUnlock")
            case "redis":
                from redis.asyncio import Redis

                url = store.environ["LANGGRAPH_CHECKPOINT_REDIS_URL"]
                redis = await stack.enter_async_context(Redis.from_url(url))
                await redis.client_pause(600_000, all=False)
                stack.push_async_callback(redis.client_unpause)
        yield


@only(*SERVERS)
async def test_a_run_goes_on_when_the_server_hangs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    name = store.thread("a")
    async with opened(store.settings()) as saver:
        graph = graph_with(saver)
        await talk(graph, name, "hello")
        await graph.aget_state(thread(name))
        # Not before: on a busy machine an operation of a healthy server may take as long.
        monkeypatch.setattr(server_saver, "OPERATION_SECONDS", 1.0)
        async with hanging(store), asyncio.timeout(60):
            assert len(await talk(graph, name, "again")) == 4
            assert "did not answer within 1 seconds" in str(saver.problem)
        await until_stored(saver)
        assert len(await talk(graph, name, "third")) == 6
