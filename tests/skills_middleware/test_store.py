from __future__ import annotations

import asyncio
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ai_platform_engineering.skills_middleware.store.sqlite import SqliteSkillStore
from ai_platform_engineering.skills_middleware.store.store import SkillKey, SkillStoreError
from tests.skills_middleware.store_contract import OpenStore, StoreContract, new_skill


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data" / "skills.db"


@pytest.fixture
def open_store(file: Path) -> Iterator[OpenStore]:
    opened: list[SqliteSkillStore] = []

    def open_one() -> SqliteSkillStore:
        opened.append(SqliteSkillStore(file))
        return opened[-1]

    yield open_one
    for store in opened:
        asyncio.run(store.aclose())


def modes(directory: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.glob("*")}


class TestSqlite(StoreContract):
    pass


async def test_the_file_is_private_and_created_by_the_first_write(file: Path, open_store: OpenStore) -> None:
    store = open_store()
    assert await store.load() == ()
    assert not modes(file.parent)
    await store.create(new_skill(), None)
    assert modes(file.parent) == {"skills.db": 0o600, "skills.db-shm": 0o600, "skills.db-wal": 0o600}


async def test_the_version_of_an_open_or_missing_file_is_read_without_a_thread(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store()
    with monkeypatch.context() as no_threads:
        no_threads.setattr(asyncio, "to_thread", None)
        assert await store.version() == ""
    await store.create(new_skill("one"), None)
    with monkeypatch.context() as no_threads:
        no_threads.setattr(asyncio, "to_thread", None)
        assert await store.version()


async def test_a_file_that_is_replaced_is_read_from_then_on(file: Path, open_store: OpenStore) -> None:
    store = open_store()
    await store.create(new_skill("before"), None)
    version = await store.version()
    other = SqliteSkillStore(file.with_name("other.db"))
    await other.create(new_skill("after"), None)
    await other.aclose()
    file.with_name("other.db").rename(file)
    for suffix in ("-wal", "-shm"):
        file.with_name(file.name + suffix).unlink()
    assert await store.version() != version
    assert [skill.name for skill in await store.load()] == ["after"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"not a database, but long enough to be taken for the header of one" * 20, "file is not a database.*Move it"),
        ("CREATE TABLE t (x)", "is a database of another program"),
        ("CREATE TABLE skill (x); PRAGMA user_version = 99", "newer version.*format 99"),
    ],
)
def test_a_file_that_is_not_ours_is_left_alone(
    file: Path, open_store: OpenStore, content: bytes | str, sentence: str
) -> None:
    file.parent.mkdir()
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(content)
    before = file.read_bytes()
    with pytest.raises(SkillStoreError, match=sentence):
        asyncio.run(open_store().load())
    with pytest.raises(SkillStoreError, match=sentence):
        asyncio.run(open_store().create(new_skill(), None))
    assert file.read_bytes() == before


async def test_a_locked_file_refuses_writes_and_serves_reads(
    file: Path, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ai_platform_engineering.skills_middleware.store.sqlite.BUSY_SECONDS", 0.05)
    store = open_store()
    created = await store.create(new_skill(), None)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(SkillStoreError, match=r"skills\.db cannot be used to store skills.*try again"):
            await store.create(new_skill("second"), None)
        assert await store.load() == (created,)
    await store.create(new_skill("second"), None)


async def test_a_full_disk_loses_nothing_that_was_stored(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = await open_store().create(new_skill(), None)
    store = open_store()
    connect = sqlite3.connect

    def connect_to_a_small_disk(*arguments: object, **options: object) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)  # type: ignore[call-overload]
        connection.execute("PRAGMA max_page_count = 10")
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_to_a_small_disk)
    with pytest.raises(SkillStoreError, match=r"disk is full.*Free some space"):
        await store.create(new_skill("large", instructions="x" * 100_000), None)
    assert await store.load() == (created,)
    await store.create(new_skill("small"), None)


async def test_text_that_cannot_be_encoded_is_refused(open_store: OpenStore) -> None:
    store = open_store()
    await store.create(new_skill(), None)
    with pytest.raises(SkillStoreError, match="not text that can be stored"):
        await store.get(SkillKey("\ud800"))
