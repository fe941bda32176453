"""SQLite file with the feedback. Its methods block on disk I/O: call them in a thread."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import astuple, fields
from pathlib import Path
from threading import Lock
from typing import Final, Literal

from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.private_files import create_private_file

FORMAT: Final = 1
NS_PER_DAY: Final = 86_400 * 10**9
_COLUMNS: Final = tuple(field.name for field in fields(Feedback))
STATES: Final = {"waiting": 0, "forwarded": 1, "refused": 2}
_TABLE: Final = """
CREATE TABLE feedback (
    id TEXT PRIMARY KEY,
    trace_id TEXT NOT NULL,
    rating TEXT NOT NULL,
    surface TEXT NOT NULL,
    at_ns INTEGER NOT NULL,
    task_id TEXT NOT NULL,
    message_id TEXT NOT NULL,
    reason TEXT NOT NULL,
    user TEXT NOT NULL,
    user_name TEXT NOT NULL,
    forwarded INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX feedback_by_time ON feedback (at_ns);
CREATE INDEX feedback_waiting ON feedback (at_ns) WHERE forwarded = 0;
"""


class FeedbackStoreError(ReadableError):
    """Feedback cannot be stored or read. The text names the file or the server, and what to do."""


class FeedbackFileError(FeedbackStoreError):
    def __init__(self, path: Path | None, why: str) -> None:
        super().__init__(
            f"{path or 'Memory'} cannot be used to store feedback: {why}. Move the file away to start with a new one, "
            "or choose another directory with DATA_DIR."
        )


class FeedbackFile:
    """Several processes may write to it, the server forwards. Without a path the feedback is in memory only."""

    is_shared = False

    def __init__(self, path: Path | None, max_age_days: float = 0) -> None:
        self.path = path
        self._max_age_ns = int(max_age_days * NS_PER_DAY)
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None

    def store(self, feedback: Feedback) -> bool:
        with self._open() as connection:
            known = connection.execute("SELECT 1 FROM feedback WHERE id = ?", [feedback.id]).fetchone()
            places = ", ".join("?" * len(_COLUMNS))
            connection.execute(
                f"INSERT OR REPLACE INTO feedback (id, {', '.join(_COLUMNS)}) VALUES (?, {places})",  # noqa: S608
                [feedback.id, *astuple(feedback)],
            )
            if self._max_age_ns:
                connection.execute("DELETE FROM feedback WHERE at_ns < ?", [time.time_ns() - self._max_age_ns])
            return known is None

    def newest(self, limit: int, user: str | None = None) -> list[Feedback]:
        with self._open() as connection:
            return _read(connection, "WHERE ?1 IS NULL OR user = ?1 ORDER BY at_ns DESC LIMIT ?2", user, limit)

    def begin_forwarding(self) -> bool:
        return True

    def end_forwarding(self) -> None:
        pass

    def pending(self, limit: int) -> list[Feedback]:
        with self._open() as connection:
            return _read(connection, "WHERE forwarded = 0 ORDER BY at_ns LIMIT ?", limit)

    def mark_done(self, feedback: Feedback, state: Literal["forwarded", "refused"]) -> None:
        with self._open() as connection:
            connection.execute(
                "UPDATE feedback SET forwarded = ? WHERE id = ? AND at_ns = ?",
                [STATES[state], feedback.id, feedback.at_ns],
            )

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = _connect(self.path)
                with self._connection:
                    yield self._connection
            except (sqlite3.Error, OSError) as error:
                raise FeedbackFileError(self.path, _reason(error)) from error


def feedback_path(settings: Settings) -> Path:
    return settings.data_dir / "feedback.sqlite"


def read_newest(path: Path, limit: int) -> list[Feedback]:
    """The newest feedback in the file, also while a server writes to it; empty if there is no file."""
    if not path.exists():
        return []
    with _reading(path) as connection:
        return _read(connection, "ORDER BY at_ns DESC LIMIT ?", limit)


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            _check_format(path, connection)
            yield connection
    except sqlite3.Error as error:
        raise FeedbackFileError(path, _reason(error)) from error


def check_up_file(name: str, path: Path) -> StoreCheckup:
    found = StoreCheckup.of_file(name, path)
    try:
        return found.opened(entries=_count(path)) if found.exists else found
    except FeedbackFileError as error:
        return found.failed(str(error))


def _count(path: Path) -> int:
    with _reading(path) as connection:
        (count,) = connection.execute("SELECT count(*) FROM feedback").fetchone()
    return int(count)


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is not None:
        create_private_file(path)
    connection = sqlite3.connect(path or ":memory:", check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            for statement in filter(str.strip, _TABLE.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.commit()
        _check_format(path, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_format(path: Path | None, connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != FORMAT:
        raise FeedbackFileError(path, f"it has format {found}, not {FORMAT}")


def _read(connection: sqlite3.Connection, clauses: str, *values: str | int | None) -> list[Feedback]:
    rows = connection.execute(f"SELECT {', '.join(_COLUMNS)} FROM feedback {clauses}", values)  # noqa: S608
    return [Feedback(*row) for row in rows]


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
