"""SQLite file with the usage of each day, which one server writes. It is created with the first usage."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final

from ai_platform_engineering.budgets.usage import FIELDS, Usage, UsageRow, days_before
from ai_platform_engineering.storage.checkup import StoreCheckup, is_writable
from ai_platform_engineering.storage.sqlite.owned_file import reason
from ai_platform_engineering.storage.usage.store import UsageBatch, UsageStoreError
from ai_platform_engineering.utils.private_files import create_private_file

FORMAT: Final = 1
KEPT_KEY_DAYS: Final = 30
"""Days for which the keys of batches are kept. A batch is repeated within minutes, or after a restart."""
_BUSY_SECONDS: Final = 5.0
_COLUMNS: Final = ", ".join(FIELDS)
_TABLES: Final = f"""
CREATE TABLE usage (
    day TEXT NOT NULL,
    scope TEXT NOT NULL,
    model TEXT NOT NULL,
    {", ".join(f"{name} INTEGER NOT NULL DEFAULT 0" for name in FIELDS)},
    PRIMARY KEY (day, scope, model)
) WITHOUT ROWID;
CREATE TABLE batch (key TEXT PRIMARY KEY, day TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {FORMAT};
"""
_ADD: Final = (
    f"INSERT INTO usage (day, scope, model, {_COLUMNS}) VALUES (?, ?, ?, {', '.join('?' * len(FIELDS))}) "  # noqa: S608
    f"ON CONFLICT DO UPDATE SET {', '.join(f'{name} = {name} + excluded.{name}' for name in FIELDS)}"
)
_SUMS: Final = ", ".join(f"sum({name})" for name in FIELDS)


class UsageFile:
    """Without a path the usage is in memory only. Runs in progress are always in memory."""

    is_shared = False

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._active: dict[str, frozenset[str]] = {}

    def add(self, batches: Sequence[UsageBatch]) -> None:
        with self._transaction() as connection:
            for batch in batches:
                day = max((row.day for row in batch.rows), default="")
                found = connection.execute("INSERT OR IGNORE INTO batch VALUES (?, ?)", (batch.key, day))
                if found.rowcount:
                    values = [(row.day, row.scope, row.model, *_counts(row.usage)) for row in batch.rows]
                    connection.executemany(_ADD, values)
                    connection.execute("DELETE FROM batch WHERE day < ?", (days_before(day, KEPT_KEY_DAYS),))

    def totals(self, day: str, scopes: Collection[str]) -> Mapping[str, Usage]:
        query = f"SELECT scope, {_SUMS} FROM usage WHERE day = ? AND scope IN ({_placeholders(scopes)}) GROUP BY scope"  # noqa: S608
        return {scope: Usage(*counts) for scope, *counts in self._rows(query, day, *scopes)}

    def rows(self, since: str, scopes: Collection[str] | None = None) -> list[UsageRow]:
        only = "" if scopes is None else f"AND scope IN ({_placeholders(scopes)}) "
        query = f"SELECT day, scope, model, {_COLUMNS} FROM usage WHERE day >= ? {only}ORDER BY day, scope, model"  # noqa: S608
        found = self._rows(query, since, *(scopes or ()))
        return [UsageRow(day, scope, model, Usage(*counts)) for day, scope, model, *counts in found]

    def activate(self, task_id: str, limits: Mapping[str, int | None]) -> Mapping[str, int]:
        with self._lock:
            others = Counter(
                scope for task, scopes in self._active.items() if task != task_id for scope in scopes & limits.keys()
            )
            full = {scope: others[scope] for scope, limit in limits.items() if limit and others[scope] >= limit}
            if not full:
                self._active[task_id] = frozenset(limits)
            return full

    def deactivate(self, task_id: str) -> None:
        with self._lock:
            self._active.pop(task_id, None)

    def check_up(self, name: str) -> StoreCheckup:
        if self._path is None:
            return StoreCheckup(name, "memory", "memory")
        found = StoreCheckup.of_file(name, self._path)
        if not is_writable(self._path):
            return found.failed(str(_unusable(self._path, "it cannot be written")))
        if not found.exists:
            return found
        try:
            with closing(sqlite3.connect(f"{self._path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                _check_format(connection, self._path)
                (count,) = connection.execute("SELECT count(DISTINCT day) FROM usage").fetchone()
        except sqlite3.Error as error:
            return found.failed(str(_unusable(self._path, reason(error))))
        except UsageStoreError as error:
            return found.failed(str(error))
        return found.opened(days=count, format=FORMAT)

    def close(self) -> None:
        with self._lock:
            if self._path is not None:
                self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _rows(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        if self._connection is None and self._path is not None and not self._path.exists():
            return []
        with self._opened() as connection:
            return connection.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = _connect(self._path)
                yield self._connection
            except (sqlite3.Error, OSError) as error:
                # Closing rolls a transaction back. A new connection also finds a file that was replaced.
                if self._path is not None:
                    self._close()
                raise _unusable(self._path, reason(error)) from error


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        create_private_file(path)
    connection = sqlite3.connect(
        path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            connection.executescript(f"BEGIN IMMEDIATE;{_TABLES}COMMIT;")
        _check_format(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_format(connection: sqlite3.Connection, path: Path | None) -> None:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found != FORMAT:
        raise _unusable(path, f"it has format {found}, not {FORMAT}")


def _counts(usage: Usage) -> tuple[int, ...]:
    return tuple(getattr(usage, name) for name in FIELDS)


def _placeholders(values: Collection[str]) -> str:
    return ", ".join("?" * len(values))


def _unusable(path: Path | None, why: str) -> UsageStoreError:
    return UsageStoreError(
        f"{path or 'Memory'} cannot be used to count usage: {why}. Move the file away to start with a new one, choose "
        "another directory with DATA_DIR, or set USAGE=off."
    )
