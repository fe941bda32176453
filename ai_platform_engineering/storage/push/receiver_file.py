"""SQLite file with the receivers, which one server writes. It is created with the first receiver."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Final

from a2a.types.a2a_pb2 import TaskPushNotificationConfig

from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.push.receivers import Receiver, ReceiverKey, ReceiverStoreError
from ai_platform_engineering.storage.sqlite.owned_file import reason
from ai_platform_engineering.utils.private_files import create_private_file

FORMAT: Final = 1
_TABLES: Final = """
CREATE TABLE receiver (
    task_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    config_id TEXT NOT NULL,
    created_ns INTEGER NOT NULL,
    delivered INTEGER NOT NULL,
    finished INTEGER NOT NULL DEFAULT 0,
    config BLOB NOT NULL,
    PRIMARY KEY (task_id, owner, config_id)
) WITHOUT ROWID;
CREATE INDEX receiver_unfinished ON receiver (finished) WHERE finished = 0;
"""
_PUT: Final = """
INSERT INTO receiver (task_id, owner, config_id, created_ns, delivered, config) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET config = excluded.config, finished = 0
"""
_SELECT: Final = "SELECT owner, config, delivered, created_ns FROM receiver"
_KEYS: Final = "SELECT task_id, owner, config_id FROM receiver"
_KEY: Final = "task_id = ? AND owner = ? AND config_id = ?"


class ReceiverFile:
    """Without a path the receivers are in memory only."""

    is_shared = False

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None

    def put(self, receiver: Receiver) -> None:
        values = (*receiver.key, receiver.created_ns, receiver.delivered, receiver.config.SerializeToString())
        with self._open() as connection:
            connection.execute(_PUT, values)

    def get(self, key: ReceiverKey) -> Receiver | None:
        found = [_receiver(row) for row in self._rows(f"{_SELECT} WHERE {_KEY}", *key)]
        return found[0] if found else None

    def of_task(self, task_id: str) -> list[Receiver]:
        rows = self._rows(f"{_SELECT} WHERE task_id = ? ORDER BY created_ns, config_id", task_id)
        return [_receiver(row) for row in rows]

    def keys(self, task_ids: Collection[str]) -> list[ReceiverKey]:
        rows = [row for task_id in task_ids for row in self._rows(f"{_KEYS} WHERE task_id = ?", task_id)]
        return [ReceiverKey(*row) for row in rows]

    def unfinished(self) -> list[ReceiverKey]:
        return [ReceiverKey(*row) for row in self._rows(f"{_KEYS} WHERE finished = 0")]

    def tasks(self, created_before_ns: int) -> list[str]:
        query = "SELECT DISTINCT task_id FROM receiver WHERE created_ns < ?"
        return [task_id for (task_id,) in self._rows(query, created_before_ns)]

    def mark(self, key: ReceiverKey, delivered: int, *, finished: bool) -> None:
        with self._open() as connection:
            statement = f"UPDATE receiver SET delivered = ?, finished = ? WHERE {_KEY}"  # noqa: S608
            connection.execute(statement, (delivered, finished, *key))

    def delete(self, task_id: str, owner: str | None = None, config_id: str | None = None) -> None:
        with self._open() as connection:
            connection.execute(
                "DELETE FROM receiver WHERE task_id = ? AND owner = coalesce(?, owner)"
                " AND config_id = coalesce(?, config_id)",
                (task_id, owner, config_id),
            )

    def claim(self, key: ReceiverKey) -> bool:
        return True

    def release(self, key: ReceiverKey) -> None:
        pass

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _rows(self, query: str, *values: str | int) -> list[tuple[Any, ...]]:
        if self._connection is None and self._path is not None and not self._path.exists():
            return []
        with self._open() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = _connect(self._path)
                yield self._connection
            except (sqlite3.Error, OSError) as error:
                raise _unusable(self._path, reason(error)) from error


def check_up_file(name: str, path: Path) -> StoreCheckup:
    found = StoreCheckup.of_file(name, path)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != FORMAT:
                return found.failed(str(_unusable(path, f"it has format {version}, not {FORMAT}")))
            (count,) = connection.execute("SELECT count(*) FROM receiver").fetchone()
    except sqlite3.Error as error:
        return found.failed(str(_unusable(path, reason(error))))
    return found.opened(receivers=count, format=version)


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        create_private_file(path)
    connection = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # Deleted credentials do not stay in free pages.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("BEGIN IMMEDIATE")
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not found and not tables:
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        elif found != FORMAT:
            raise _unusable(path, f"it has format {found}, not {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _receiver(row: tuple[Any, ...]) -> Receiver:
    owner, config, delivered, created_ns = row
    return Receiver(owner, TaskPushNotificationConfig.FromString(config), delivered, created_ns)


def _unusable(path: Path | None, why: str) -> ReceiverStoreError:
    return ReceiverStoreError(
        f"{path or 'Memory'} cannot be used to store the receivers of push notifications: {why}. Move the file away to "
        "start with a new one, or choose another directory with DATA_DIR."
    )
