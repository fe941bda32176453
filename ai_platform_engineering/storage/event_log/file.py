"""The file of the durable event log: where it is, what is in it, who may write to it.

SQLite in WAL mode: readers never wait for the writer. With `synchronous=NORMAL` a commit is in the operating system's
hands when it returns, so a killed process loses nothing; only a power cut can take the last moments, and it leaves
the file sound. `FULL` would wait for the disk at every commit, a hundred times the cost.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.sqlite.owned_file import FileInUseError, own, reason

FORMAT: Final = 1

WAITS: Final = "state IN (6, 8)"
"""Tasks that wait for a person (`PARKED_STATES`), in the words of the index, as SQLite uses it for no others."""

_TABLES: Final = """
CREATE TABLE task (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    context_id TEXT NOT NULL,
    state INTEGER NOT NULL,
    created_ns INTEGER NOT NULL,
    changed_ns INTEGER NOT NULL,
    ended_ns INTEGER,
    submitted BLOB NOT NULL,
    folded BLOB
);
CREATE INDEX task_by_change ON task (changed_ns, id);
CREATE INDEX task_by_context ON task (context_id, changed_ns, id);
CREATE INDEX task_by_state ON task (state, changed_ns, id);
CREATE INDEX task_by_end ON task (ended_ns) WHERE ended_ns IS NOT NULL;
CREATE TABLE event (
    task INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at_ns INTEGER NOT NULL,
    is_status INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (task, seq)
) WITHOUT ROWID;
CREATE TABLE message (
    task INTEGER NOT NULL,
    place INTEGER NOT NULL,
    after INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (task, place)
) WITHOUT ROWID;
"""
_INDEX_OF_WAITING: Final = f"CREATE INDEX IF NOT EXISTS task_waiting ON task (context_id, changed_ns) WHERE {WAITS}"


class LogFileError(SettingsError):
    """The file cannot be used; the sentence names it and the way out."""


class LogInUseError(LogFileError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is being written by another process. Stop that one, or give this one a directory of its own "
            "with DATA_DIR (or EVENT_LOG=memory)."
        )


class LogFile:
    """The file, open for writing, by this process alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: sqlite3.Connection | None = None
        try:
            self._lock = own(path)
            self.connection = _prepared(path)
        except BaseException as error:
            if self._lock is not None:
                self._lock.close()
            if isinstance(error, FileInUseError):
                raise LogInUseError(path) from None
            if isinstance(error, sqlite3.Error | OSError):
                raise unusable(path, error) from error
            raise

    def close(self) -> None:
        self.connection.close()
        if self._lock is not None:
            self._lock.close()


def tasks_file(settings: Settings, agent: str = SUPERVISOR) -> Path:
    return settings.data_dir / ("tasks.db" if agent == SUPERVISOR else f"tasks-{agent}.db")


def open_for_reading(path: Path, *, check_same_thread: bool = True) -> sqlite3.Connection:
    """A connection that writes nothing, also while another process writes."""
    if not path.exists():
        raise LogFileError(f"{path} does not exist: no task was kept there yet. Is DATA_DIR the server's?")
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro",
            uri=True,
            isolation_level=None,
            check_same_thread=check_same_thread,
        )
        connection.execute("PRAGMA query_only = ON")
        _check_format(path, connection)
    except sqlite3.Error as error:
        raise unusable(path, error) from error
    return connection


def unusable(path: Path, error: Exception) -> LogFileError:
    match error:
        case sqlite3.OperationalError() | OSError():
            advice = "Check that the directory can be written and has room, or choose another one with DATA_DIR"
        case _:
            advice = "Move the file away to begin a new one, or choose another directory with DATA_DIR"
    return LogFileError(f"{path} cannot be used as the event log: {reason(error)}. {advice} (or EVENT_LOG=memory).")


def _prepared(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # The WAL checkpointer does the checkpoints.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
            connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {FORMAT}; COMMIT")
        _check_format(path, connection)
        # A file that cannot be written is found out here and not by the first question.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_INDEX_OF_WAITING)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
        # From now on it waits for nobody, as the event loop would wait with it.
        connection.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def _check_format(path: Path, connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if found != FORMAT or not {"task", "event", "message"} <= tables:
        with closing(connection):
            raise LogFileError(
                f"{path} is not an event log of this version (format {found}, not {FORMAT}). Move it away, or choose "
                "another directory with DATA_DIR."
            )
