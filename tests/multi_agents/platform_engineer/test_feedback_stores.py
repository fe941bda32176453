"""The stores of feedback, one contract for all, and forwarding by several processes that share one."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from ai_platform_engineering.multi_agents.platform_engineer.feedback.forwarding import FeedbackForwarder
from ai_platform_engineering.multi_agents.platform_engineer.feedback.langfuse import Langfuse
from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.multi_agents.platform_engineer.feedback.store import (
    FeedbackStore,
    FeedbackStoreError,
    open_feedback,
)
from ai_platform_engineering.settings import Settings, load_settings
from tests.langfuse_standin import LangfuseStandIn, langfuse
from tests.servers import Command
from tests.services.environment import ROOT
from tests.services.postgres import PASSWORD, disconnect_all
from tests.utils.a2a_common.serving import until

pytest_plugins = ("tests.services.fixtures",)

NOW = time.time_ns()
DAY_NS = 86_400 * 10**9
LIKED = Feedback("t-1", "up", "slack", NOW, "task-1", "m-1", "quick", "slack:T1/U1", "Jane")

Open = Callable[[], FeedbackStore]


def in_postgres(database: str, **environ: str) -> Settings:
    return load_settings({"EVENT_LOG": "postgres", "EVENT_LOG_POSTGRES_DSN": database, **environ}, None)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FeedbackStore]:
    if request.param == "postgres":
        settings = in_postgres(request.getfixturevalue("database"))
    else:
        settings = load_settings({"EVENT_LOG": request.param, "DATA_DIR": str(tmp_path)}, None)
    opened = open_feedback(settings)
    yield opened
    opened.close()


@pytest.fixture
def open_shared(database: str) -> Iterator[Open]:
    """Opens the store as another process would."""
    opened: list[FeedbackStore] = []

    def another() -> FeedbackStore:
        opened.append(open_feedback(in_postgres(database)))
        return opened[-1]

    yield another
    for store in opened:
        store.close()


def test_feedback_comes_back_as_it_was_stored(store: FeedbackStore) -> None:
    assert store.store(LIKED)
    assert store.newest(9) == [LIKED]
    changed = replace(LIKED, rating="down", at_ns=NOW + 1, reason="", task_id="")
    assert not store.store(changed)
    assert store.newest(9) == [changed]


def test_the_newest_come_first_and_the_oldest_are_sent_first(store: FeedbackStore) -> None:
    rows = [replace(LIKED, trace_id=f"t-{number}", at_ns=NOW + number) for number in range(4)]
    for row in (rows[2], rows[0], rows[3], rows[1]):
        assert store.store(row)
    assert store.newest(3) == [rows[3], rows[2], rows[1]]
    assert store.pending(3) == rows[:3]
    store.mark_done(rows[0], "forwarded")
    store.mark_done(rows[2], "refused")
    assert store.pending(3) == [rows[1], rows[3]]


def test_feedback_that_was_replaced_while_it_was_sent_is_sent_again(store: FeedbackStore) -> None:
    store.store(LIKED)
    later = replace(LIKED, rating="down", at_ns=NOW + 1)
    store.store(later)
    store.mark_done(LIKED, "forwarded")
    assert store.pending(9) == [later]
    store.mark_done(later, "forwarded")
    store.store(replace(later, at_ns=NOW + 2))
    assert store.pending(9) == [replace(later, at_ns=NOW + 2)]


def test_old_feedback_is_deleted(store: FeedbackStore) -> None:
    store.store(replace(LIKED, trace_id="old", at_ns=NOW - 31 * DAY_NS))
    store.store(LIKED)
    assert store.newest(9) == [LIKED]


def test_any_text_can_be_stored(open_shared: Open) -> None:
    store = open_shared()
    store.store(replace(LIKED, reason="a\0b ö 🚀"))
    assert store.newest(1)[0].reason == "a\ufffdb ö 🚀"


def test_processes_share_feedback_and_one_at_a_time_forwards(open_shared: Open) -> None:
    ours, theirs = open_shared(), open_shared()
    ours.store(LIKED)
    assert theirs.newest(1) == [LIKED]
    assert ours.begin_forwarding()
    assert not theirs.begin_forwarding()
    ours.end_forwarding()
    assert theirs.begin_forwarding()


def test_a_server_that_cannot_be_reached_is_named_without_its_password() -> None:
    store = open_feedback(in_postgres("postgresql://ann:hunter2@127.0.0.1:9/tasks"))
    with pytest.raises(FeedbackStoreError, match=r"127\.0\.0\.1:9/tasks cannot be used to store feedback") as said:
        store.newest(1)
    assert "hunter2" not in str(said.value)


def test_the_command_lists_feedback_in_postgres(
    database: str, open_shared: Open, tmp_path: Path, platform_engineer: Command
) -> None:
    environ = {"EVENT_LOG": "postgres", "EVENT_LOG_POSTGRES_DSN": database, "DATA_DIR": str(tmp_path / "none")}
    assert platform_engineer("feedback", "list", **environ).stdout == "There is no feedback.\n"
    open_shared().store(LIKED)
    listed = platform_engineer("feedback", "list", **environ)
    assert listed.stdout.split()[2:] == ["up", "slack", "Jane", "task-1", "quick"]
    refused = platform_engineer("feedback", "list", **environ | {"EVENT_LOG_POSTGRES_DSN": database + "_gone"})
    assert refused.returncode == 1
    assert "EVENT_LOG_POSTGRES_DSN" in refused.stderr
    assert PASSWORD not in refused.stderr


@asynccontextmanager
async def forwarding(store: FeedbackStore, standin: LangfuseStandIn) -> AsyncIterator[FeedbackForwarder]:
    target = Langfuse.of(load_settings(standin.environ(), None))
    assert target is not None
    forwarder = FeedbackForwarder(store, target, first_backoff=0.05, round_seconds=0.1)
    async with forwarder.running():
        yield forwarder


@pytest.mark.long
async def test_replicas_send_each_score_once(open_shared: Open) -> None:
    stores = [open_shared() for _ in range(3)]
    async with langfuse() as standin, AsyncExitStack() as stack:
        forwarders = [await stack.enter_async_context(forwarding(store, standin)) for store in stores]
        standin.codes = [503]
        for number in range(30):
            row = replace(LIKED, trace_id=f"t-{number}", at_ns=NOW + number)
            await asyncio.to_thread(stores[number % 3].store, row)
            forwarders[number % 3].wake()
        await until(lambda: len(standin.scores) == 30)
        await until(lambda: not stores[0].pending(1))
    assert standin.calls == 31


FORWARDING = """
import asyncio, sys
from ai_platform_engineering.multi_agents.platform_engineer.feedback.routes import FeedbackRoutes
from ai_platform_engineering.settings import load_settings

async def forward():
    async with FeedbackRoutes(load_settings()).running():
        await asyncio.Event().wait()

asyncio.run(forward())
"""


@pytest.mark.long
@pytest.mark.process
async def test_the_score_of_a_killed_process_is_sent_by_another(database: str, open_shared: Open) -> None:
    store = open_shared()
    await asyncio.to_thread(store.store, LIKED)
    async with langfuse() as standin:
        standin.answers.clear()
        environ = {"EVENT_LOG": "postgres", "EVENT_LOG_POSTGRES_DSN": database, **standin.environ()}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", FORWARDING, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT), **environ}
        )
        try:
            await until(lambda: standin.calls == 1)
            assert not await asyncio.to_thread(open_shared().begin_forwarding)
            async with forwarding(open_shared(), standin):
                process.kill()
                await process.wait()
                standin.answers.set()
                await until(lambda: not store.pending(1))
                assert standin.calls == 2
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert [score["traceId"] for score in standin.scores.values()] == ["t-1"]


async def test_a_restarted_database_is_used_again(open_shared: Open, database: str) -> None:
    store = open_shared()
    async with langfuse() as standin, forwarding(store, standin) as forwarder:
        await asyncio.to_thread(store.store, LIKED)
        forwarder.wake()
        await until(lambda: standin.calls == 1)
        await asyncio.to_thread(disconnect_all, database)
        await asyncio.to_thread(store.store, replace(LIKED, trace_id="t-2"))
        forwarder.wake()
        await until(lambda: len(standin.scores) == 2)
