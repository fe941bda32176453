"""Several processes switch one new file at the same moment."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ai_platform_engineering.storage.sqlite.shared_file import write_ahead


def test_all_who_switch_at_once_get_there(tmp_path: Path) -> None:
    together = threading.Barrier(8)

    def switched(path: Path) -> str:
        connection = sqlite3.connect(path, timeout=10, isolation_level=None)
        try:
            together.wait()
            write_ahead(connection, 10)
            mode: str = connection.execute("PRAGMA journal_mode").fetchone()[0]
            return mode
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as threads:
        for number in range(10):
            assert set(threads.map(switched, [tmp_path / f"{number}.db"] * 8)) == {"wal"}


def test_whoever_holds_it_is_waited_for_and_not_for_ever(tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    waiter = sqlite3.connect(tmp_path / "x.db", timeout=0, isolation_level=None)
    try:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            write_ahead(waiter, 0.05)
    finally:
        waiter.close()
        holder.close()


def test_what_is_no_database_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"not a database, and long enough for a header" * 40)
    connection = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    try:
        with pytest.raises(sqlite3.DatabaseError, match="not a database"):
            write_ahead(connection, 60)
    finally:
        connection.close()
