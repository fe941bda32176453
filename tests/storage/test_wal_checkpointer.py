"""WAL checkpoints and bulk work in the background thread of a SQLite file."""

from __future__ import annotations

import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ai_platform_engineering.storage.sqlite import wal_checkpointer
from ai_platform_engineering.storage.sqlite.shared_file import is_busy
from ai_platform_engineering.storage.sqlite.wal_checkpointer import WalCheckpointer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "things.db"


@pytest.fixture
def writer(path: Path) -> Iterator[sqlite3.Connection]:
    # Some tests use it in the checkpointer's thread.
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("CREATE TABLE thing (name TEXT)")
        connection.execute("PRAGMA user_version = 7")
        yield connection


def in_the_file_alone(path: Path) -> list[str]:
    """What a copy of the file has, without its write-ahead log."""
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    with closing(sqlite3.connect(copy)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM thing")]


def test_now_and_then_the_log_is_moved_into_the_file(path: Path, writer: sqlite3.Connection) -> None:
    with closing(WalCheckpointer(path)) as checkpointer:
        writer.execute("INSERT INTO thing VALUES ('first')")
        for _ in range(wal_checkpointer._USES_BETWEEN):
            checkpointer.note_use()
    assert in_the_file_alone(path) == ["first"]
    assert writer.execute("PRAGMA user_version").fetchone() == (7,)


@pytest.mark.serial
def test_the_log_does_not_grow_for_ever_while_somebody_goes_on_writing(
    path: Path, writer: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_checkpointer, "_USES_BETWEEN", 20)
    writer.execute("PRAGMA busy_timeout = 10000")
    with closing(WalCheckpointer(path)) as checkpointer:
        for number in range(1500):
            writer.execute("INSERT INTO thing VALUES (?)", (f"{number} " * 500,))
            checkpointer.note_use()
            time.sleep(0.001)
    # Each commit has written two pages. The log was begun anew, so that it is far from the size of all of them.
    assert path.with_name("things.db-wal").stat().st_size < 1500 * 2 * 4096 / 4


def test_who_reads_in_the_log_is_not_waited_for(
    path: Path, writer: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    writer.execute("INSERT INTO thing VALUES ('first')")
    with closing(sqlite3.connect(path, isolation_level=None)) as reader, closing(WalCheckpointer(path)) as checkpointer:
        reader.execute("BEGIN")
        assert reader.execute("SELECT name FROM thing").fetchall() == [("first",)]
        began = time.monotonic()
        checkpointer._thread.submit(checkpointer._checkpoint_log).result()
        assert time.monotonic() - began < wal_checkpointer._BUSY_SECONDS
        writer.execute("INSERT INTO thing VALUES ('second')")
        assert reader.execute("SELECT count(*) FROM thing").fetchone() == (1,)
    assert not caplog.records


async def test_what_takes_its_time_is_done_in_one_transaction_and_elsewhere(
    path: Path, writer: sqlite3.Connection
) -> None:
    def insert(connection: sqlite3.Connection) -> str:
        connection.execute("INSERT INTO thing VALUES ('one')")
        connection.execute("INSERT INTO thing VALUES ('two')")
        assert writer.execute("SELECT count(*) FROM thing").fetchone() == (0,)
        with pytest.raises(sqlite3.OperationalError) as refused:
            writer.execute("INSERT INTO thing VALUES ('between')")
        assert is_busy(refused.value)
        return threading.current_thread().name

    def fail(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO thing VALUES ('half')")
        raise ZeroDivisionError

    with closing(WalCheckpointer(path)) as checkpointer:
        assert await checkpointer.run(insert) != threading.current_thread().name
        with pytest.raises(ZeroDivisionError):
            await checkpointer.run(fail)
        assert writer.execute("SELECT name FROM thing").fetchall() == [("one",), ("two",)]


def test_a_log_that_cannot_be_moved_is_said_and_nothing_else_happens(
    path: Path, writer: sqlite3.Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_checkpointer, "_USES_BETWEEN", 1)
    with closing(WalCheckpointer(path)) as checkpointer:
        writer.execute("INSERT INTO thing VALUES ('kept')")
        checkpointer._connection.execute("PRAGMA query_only = ON")
        checkpointer.note_use()
    assert "WAL checkpoint failed" in caplog.text
    assert writer.execute("SELECT name FROM thing").fetchall() == [("kept",)]
