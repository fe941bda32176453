"""The store in a SQLite file. Each statement is one transaction, durable when it returns."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store.file import StoreFile, unreadable, unusable
from ai_platform_engineering.integrations.slack_bot.store.rows import READ, WRITTEN, row_of, run_from
from ai_platform_engineering.integrations.slack_bot.store.values import EVENT_SECONDS, StoredRun, ThreadSession

_PUT_RUN: Final = f"""
INSERT INTO run ({WRITTEN})
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    place = excluded.place, begun = excluded.begun, done = excluded.done, context_id = excluded.context_id,
    task_id = excluded.task_id, trace_id = excluded.trace_id, seen = excluded.seen, incoming = excluded.incoming,
    state = excluded.state
"""  # noqa: S608 - the columns are constants
_PRUNE_RUNS: Final = """
DELETE FROM run WHERE number IN (SELECT number FROM run WHERE done = 1 AND begun < ? LIMIT ?)
"""
_PRUNE_SESSIONS: Final = """
DELETE FROM session WHERE place IN (
    SELECT place FROM session
    WHERE last_used < ? AND place NOT IN (SELECT place FROM run WHERE done = 0)
    LIMIT ?
)
"""
_PRUNE_EVENTS: Final = "DELETE FROM heard WHERE event IN (SELECT event FROM heard WHERE at < ? LIMIT ?)"
# Takes some tens of milliseconds, independent of the size of the states.
_PRUNE_BATCH: Final = 50
_RUNS: Final = f"SELECT {READ} FROM run"  # noqa: S608


class SqliteBotStore:
    def __init__(self, path: Path) -> None:
        self._file = StoreFile(path)

    def first_time(self, event_id: str, now: float) -> bool:
        with self._connection() as connection:
            return connection.execute("INSERT OR IGNORE INTO heard VALUES (?, ?)", (event_id, now)).rowcount == 1

    def session(self, place: ThreadPlace) -> ThreadSession | None:
        with self._connection() as connection:
            query = "SELECT context_id, last_used FROM session WHERE place = ?"
            row = connection.execute(query, (place.key,)).fetchone()
        return ThreadSession(place, *row) if row else None

    def put_session(self, session: ThreadSession) -> None:
        with self._connection() as connection:
            values = (session.place.key, session.context_id, session.last_used)
            connection.execute("INSERT OR REPLACE INTO session VALUES (?, ?, ?)", values)

    def put_run(self, run: StoredRun) -> None:
        with self._connection() as connection:
            connection.execute(_PUT_RUN, row_of(run))

    def run(self, run_id: str) -> StoredRun | None:
        return self._newest("id = ?", run_id)

    def run_of_task(self, task_id: str) -> StoredRun | None:
        return self._newest("task_id = ?", task_id) if task_id else None

    def open_runs(self, place: ThreadPlace | None = None) -> list[StoredRun]:
        if place is None:
            return self._runs(f"{_RUNS} WHERE done = 0 ORDER BY begun, number")
        return self._runs(f"{_RUNS} WHERE place = ? AND done = 0 ORDER BY begun, number", place.key)

    def latest_run(self, place: ThreadPlace) -> StoredRun | None:
        return self._newest("place = ?", place.key)

    def prune(self, now: float, max_age: float) -> bool:
        deleted = [
            self._prune(_PRUNE_RUNS, now - max_age),
            self._prune(_PRUNE_SESSIONS, now - max_age),
            self._prune(_PRUNE_EVENTS, now - EVENT_SECONDS),
        ]
        return _PRUNE_BATCH in deleted

    def close(self) -> None:
        self._file.close()

    def _newest(self, condition: str, value: str) -> StoredRun | None:
        found = self._runs(f"{_RUNS} WHERE {condition} ORDER BY begun DESC, number DESC LIMIT 1", value)
        return found[0] if found else None

    def _runs(self, statement: str, *values: str) -> list[StoredRun]:
        with self._connection() as connection:
            rows = connection.execute(statement, values).fetchall()
        try:
            return [run_from(row) for row in rows]
        except (ValueError, TypeError, KeyError) as error:
            raise unreadable(self._file.path) from error

    def _prune(self, statement: str, oldest: float) -> int:
        with self._connection() as connection:
            return connection.execute(statement, (oldest, _PRUNE_BATCH)).rowcount

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            yield self._file.connection
        except sqlite3.ProgrammingError:
            # A bug of the caller, for example a call after close. The file is fine.
            raise
        except sqlite3.Error as error:
            raise unusable(self._file.path, error) from error
