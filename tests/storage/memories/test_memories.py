"""The stores of memories, all through one suite, with real servers."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ai_platform_engineering.identity.principal import ANONYMOUS, KEY_HOLDER, Principal
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.memories.memories import Memories
from ai_platform_engineering.storage.memories.memory import (
    MAX_LENGTH,
    MAX_MEMORIES,
    MemoriesFullError,
    MemoriesUnavailableError,
    Memory,
    UnknownMemoryError,
    UnusableTextError,
    owner_of,
    to_ms,
)
from ai_platform_engineering.storage.memories.stores import memories_for
from tests.storage.memories.memory_stores import KINDS, PERSISTENT, memory_store_of
from tests.storage.stores import SERVERS, Store

pytest_plugins = ("tests.services.fixtures",)

RETURN_SECONDS = 60
ODD_USERS = (
    "a/b",
    "..",
    "a",
    "b",
    "a.b",
    "a:b",
    "*",
    " ",
    "é",
    "e\u0301",
    "\ud83d",
    "名前",
    "x" * 5_000,
    "x" * 4_999,
    None,
)


def only(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("store", kinds, indirect=True)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with memory_store_of(request.param, tmp_path, request) as found:
        yield found


@asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Memories]:
    async with memories_for(settings) as memories:
        assert memories is not None
        assert memories.problem is None
        yield memories


@pytest.fixture
async def memories(store: Store) -> AsyncIterator[Memories]:
    async with opened(store.settings()) as found:
        yield found


def owner(store: Store, user: str | None = "jane") -> str:
    """An owner that no other test uses."""
    found = owner_of(Principal("token", store.names), user)
    assert found is not None
    return found


def texts(found: tuple[Memory, ...]) -> list[str]:
    return [memory.text for memory in found]


async def test_memories_are_listed_newest_first_and_forgotten(memories: Memories, store: Store) -> None:
    jane = owner(store)
    assert await memories.list_all(jane) == ()
    before = to_ms(datetime.now(UTC))
    first = await memories.remember(jane, "  I deploy\n to eu-west-1. \x00 ")
    second = await memories.remember(jane, "Größe 42 \U0001f600 <b>'\"")
    await memories.ping()
    assert first.text == "I deploy to eu-west-1."
    # One of the same millisecond is stored as a millisecond newer.
    assert before <= to_ms(first.created) < to_ms(second.created) <= to_ms(datetime.now(UTC)) + 1
    assert await memories.list_all(jane) == (second, first)
    # The same text again adds nothing, and keeps its time.
    assert await memories.remember(jane, "I deploy to eu-west-1.") == first
    assert len(await memories.list_all(jane)) == 2
    assert await memories.forget(jane, first.id) == first
    assert await memories.list_all(jane) == (second,)
    with pytest.raises(UnknownMemoryError, match=f"There is no memory '{first.id}'"):
        await memories.forget(jane, first.id)
    assert await memories.forget_all(jane) == 1
    assert await memories.forget_all(jane) == 0
    assert await memories.list_all(jane) == ()


async def test_no_owner_sees_or_changes_the_memories_of_another(memories: Memories, store: Store) -> None:
    owners = {user: owner(store, user) for user in ODD_USERS}
    assert len({*owners.values()}) == len(ODD_USERS)
    stored = {user: await memories.remember(key, f"note of {user!r:.100}") for user, key in owners.items()}
    same = [await memories.remember(key, "the same for all") for key in owners.values()]
    for user, key in owners.items():
        assert {*texts(await memories.list_all(key))} == {stored[user].text, "the same for all"}
    with pytest.raises(UnknownMemoryError):
        await memories.forget(owners["a"], stored["a/b"].id)
    await memories.forget(owners["a"], same[0].id)
    await memories.forget_all(owners["a/b"])
    counts = {user: len(await memories.list_all(key)) for user, key in owners.items()}
    assert counts == {user: {"a": 1, "a/b": 0}.get(str(user), 2) for user in ODD_USERS}


async def test_the_number_and_the_length_of_memories_are_limited(memories: Memories, store: Store) -> None:
    jane = owner(store)
    with pytest.raises(UnusableTextError, match=f"has {MAX_LENGTH + 1} characters"):
        await memories.remember(jane, "x" * (MAX_LENGTH + 1))
    with pytest.raises(UnusableTextError, match="empty"):
        await memories.remember(jane, " \x00\n")
    added = [memories.remember(jane, f"{number} {'ü' * (MAX_LENGTH - 4)}") for number in range(MAX_MEMORIES + 5)]
    results = await asyncio.gather(*added, return_exceptions=True)
    assert sum(isinstance(result, Memory) for result in results) == MAX_MEMORIES
    assert sum(isinstance(result, MemoriesFullError) for result in results) == 5
    assert await memories.list_all(jane) == tuple(reversed(results[:MAX_MEMORIES]))
    assert isinstance(results[0], Memory)
    assert await memories.remember(jane, results[0].text) == results[0]
    assert await memories.remember(owner(store, "omar"), "one") != results[0]
    assert await memories.forget_all(jane) == MAX_MEMORIES


async def test_a_cancelled_caller_leaves_the_store_usable(memories: Memories, store: Store) -> None:
    jane = owner(store)
    for steps in range(40):
        call = asyncio.create_task(memories.remember(jane, f"note {steps}"))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})
        await memories.list_all(jane)
    assert await memories.remember(jane, "the last") in await memories.list_all(jane)


@only(*PERSISTENT)
async def test_memories_are_there_after_a_restart_and_in_another_process(store: Store) -> None:
    jane = owner(store)
    async with opened(store.settings()) as memories, opened(store.settings()) as other:
        first = await memories.remember(jane, "one")
        assert await other.list_all(jane) == (first,)
        second = await other.remember(jane, "two")
    async with opened(store.settings()) as memories:
        assert {*await memories.list_all(jane)} == {first, second}


@pytest.mark.long
async def test_memories_expire(store: Store) -> None:
    jane = owner(store)
    async with opened(store.settings(LANGGRAPH_STORE_TTL_MINUTES="0.01")) as memories:
        first = await memories.remember(jane, "soon gone")
        async with asyncio.timeout(RETURN_SECONDS):
            while await memories.list_all(jane):  # noqa: ASYNC110 - time has to pass
                await asyncio.sleep(0.05)
            # Deleted from the store, also for owners who do not come back.
            while await memories._run(lambda stored: stored.read(jane)):  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        again = await memories.remember(jane, "soon gone")
        assert again.created > first.created


@pytest.mark.long
@only(*SERVERS)
async def test_a_server_that_stops_is_reported_at_once_and_used_again_when_it_returns(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    jane = owner(store)
    async with opened(store.settings()) as memories:
        kept = await memories.remember(jane, "kept")
        with store.stopped() as start:
            with pytest.raises(MemoriesUnavailableError, match="Memories cannot be used, because"):
                await memories.list_all(jane)
            assert memories.problem is not None
            assert "127.0.0.1" not in memories.problem
            with pytest.raises(MemoriesUnavailableError):
                await memories.remember(jane, "lost")
            warnings = [record.getMessage() for record in caplog.records if "MEMORIES" in record.getMessage()]
            assert len(warnings) == 1
            start()
            async with asyncio.timeout(RETURN_SECONDS):
                while memories.problem is not None:  # noqa: ASYNC110 - what operators do, too
                    await asyncio.sleep(0.05)
        assert await memories.list_all(jane) == (kept,)


@only(*SERVERS)
async def test_a_server_that_is_not_there_at_the_start_is_used_when_it_comes(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with store.stopped() as start:
        async with memories_for(store.settings()) as memories:
            assert memories is not None
            assert memories.problem is not None
            assert any(record.levelno == logging.WARNING for record in caplog.records)
            start()
            async with asyncio.timeout(RETURN_SECONDS):
                while memories.problem is not None:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            await memories.remember(owner(store), "now it is")


@only("sqlite")
async def test_the_file_is_private_and_has_a_format_version(store: Store) -> None:
    path = Path(store.environ["DATA_DIR"]) / "memories.db"
    async with opened(store.settings()) as memories:
        await memories.remember(owner(store), "a secret of jane")
        files = [*path.parent.glob("memories.db*")]
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(SettingsError, match=r"memories.db was written by a newer version .* LANGGRAPH_STORE_TYPE"):
        async with memories_for(store.settings()):
            pass


@only("sqlite")
async def test_a_broken_file_leaves_memories_unusable(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    (Path(store.environ["DATA_DIR"]) / "memories.db").write_bytes(b"no database" * 1000)
    async with memories_for(store.settings()) as memories:
        assert memories is not None
        assert memories.problem == "Memories cannot be used, because SQLite cannot be used: file is not a database."
        assert "MEMORIES CANNOT BE USED. SQLite at " in caplog.text


async def test_without_a_type_there_are_no_memories(tmp_path: Path) -> None:
    from ai_platform_engineering.settings import load_settings

    async with memories_for(load_settings({"DATA_DIR": str(tmp_path / "data")}, None)) as memories:
        assert memories is None
    assert not (tmp_path / "data").exists()


def test_the_owner_is_the_verified_caller_and_the_user() -> None:
    ann, bot = Principal("token", "ann"), Principal("token", "bot")
    owners = [owner_of(ann, None), owner_of(ann, "jane"), owner_of(bot, None), owner_of(bot, "jane")]
    owners += [owner_of(KEY_HOLDER, "jane"), owner_of(KEY_HOLDER, None), owner_of(ANONYMOUS, "token"), "shared"]
    assert len({*owners}) == len(owners)
    assert all(owners)
    # One person, whether a key is required or not; one owner for callers without a user.
    assert owner_of(ANONYMOUS, "jane") == owner_of(KEY_HOLDER, "jane")
    assert owner_of(ANONYMOUS, None) == owner_of(ANONYMOUS, "") == owner_of(KEY_HOLDER, None)
    assert owner_of(Principal("token", None), "jane") is None
