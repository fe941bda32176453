"""The file of the durable event log: its path, schema, format version and lock.

SQLite in WAL mode: readers never wait for the writer. With `synchronous=NORMAL` a commit has reached the operating
system when it returns, so a killed process loses nothing. A power cut can lose the last commits, but does not corrupt
the file. `FULL` would wait for the disk at every commit, at a hundred times the cost.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.storage.sqlite.damage import advice, check_pages, is_checked_at_start
from ai_platform_engineering.storage.sqlite.owned_file import FileInUseError, own, reason

FORMAT: Final = 4
_READABLE_FORMATS: Final = frozenset({1, 2, 3, FORMAT})
"""Formats with the tables and columns that the commands read. Formats before 3 have no names of conversations."""

WAITS: Final = "state IN (6, 8)"
"""Condition for tasks that wait for a person (`WAITING_STATES`). SQLite uses the partial index for this text only."""

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
    folded BLOB,
    message_id TEXT NOT NULL DEFAULT '',
    caller TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    progress INTEGER NOT NULL DEFAULT -1
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
    message_id TEXT NOT NULL DEFAULT '',
    caller TEXT,
    PRIMARY KEY (task, place)
) WITHOUT ROWID;
"""
_EFFECTS: Final = """
CREATE INDEX task_by_message ON task (context_id, message_id);
CREATE TABLE effect (
    task INTEGER NOT NULL,
    call_id TEXT NOT NULL,
    result TEXT,
    PRIMARY KEY (task, call_id)
) WITHOUT ROWID;
"""
_NAMES: Final = """
CREATE TABLE conversation (
    context_id TEXT PRIMARY KEY,
    name TEXT NOT NULL
) WITHOUT ROWID;
"""
_ACCESS: Final = """
CREATE TABLE access (
    context_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    via TEXT,
    groups TEXT NOT NULL DEFAULT '[]'
) WITHOUT ROWID;
CREATE INDEX access_by_owner ON access (owner);
"""
_OWNERS: Final = """
INSERT OR IGNORE INTO access (context_id, owner)
SELECT context_id, json_extract(caller, '$.kind') || ':' || coalesce(json_extract(caller, '$.subject'), '')
FROM task WHERE caller IS NOT NULL ORDER BY number;
"""
"""The owners of the conversations of earlier formats, from the callers of their first tasks."""
_FROM_FORMAT_1: Final = f"""
ALTER TABLE task ADD COLUMN message_id TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN caller TEXT;
ALTER TABLE task ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN attempts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN progress INTEGER NOT NULL DEFAULT -1;
ALTER TABLE message ADD COLUMN message_id TEXT NOT NULL DEFAULT '';
ALTER TABLE message ADD COLUMN caller TEXT;
{_EFFECTS}
"""
_FROM_FORMAT_3: Final = _ACCESS + _OWNERS
_MIGRATIONS: Final = {1: _FROM_FORMAT_1 + _NAMES + _ACCESS, 2: _NAMES + _FROM_FORMAT_3, 3: _FROM_FORMAT_3}
"""The statements that lead from an earlier format to this one."""
_WAITING_INDEX: Final = f"CREATE INDEX IF NOT EXISTS task_waiting ON task (context_id, changed_ns) WHERE {WAITS}"


class LogFileError(SettingsError):
    """The file cannot be used. The message names the file and the way out."""


class LogInUseError(LogFileError):
    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is being written by another process. Stop that one, or give this one a directory of its own "
            "with DATA_DIR (or EVENT_LOG=memory)."
        )


class LogFile:
    """The file, opened for writing by this process only."""

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

    def check_pages(self) -> None:
        """Raise `LogFileError` if the file is damaged. One that is too large to check now is checked later."""
        if is_checked_at_start(self.path):
            try:
                check_pages(self.connection)
            except sqlite3.Error as error:
                raise unusable(self.path, error) from error

    def close(self) -> None:
        self.connection.close()
        if self._lock is not None:
            self._lock.close()


def tasks_file(settings: Settings, agent: str = SUPERVISOR) -> Path:
    return settings.data_dir / ("tasks.db" if agent == SUPERVISOR else f"tasks-{agent}.db")


def open_for_reading(path: Path, *, check_same_thread: bool = True) -> sqlite3.Connection:
    """A read-only connection. Another process may write at the same time."""
    if not path.exists():
        raise LogFileError(f"{path} does not exist: no task was stored there yet. Set DATA_DIR as for the server.")
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
    return LogFileError(
        f"{path} cannot be used as the event log: {reason(error)}. {advice(error)}, or set another directory with "
        "DATA_DIR (or EVENT_LOG=memory)."
    )


def _prepared(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        is_empty = found == 0 and not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if not is_empty:
            # Nothing is changed in a file of another program.
            _check_format(path, connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # The WAL checkpointer does the checkpoints.
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        if is_empty:
            _upgrade(connection, _TABLES + _EFFECTS + _NAMES + _ACCESS)
        elif found in _MIGRATIONS:
            _upgrade(connection, _MIGRATIONS[found])
        # A write here finds a read-only file at the start rather than at the first message.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_WAITING_INDEX)
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
        # A busy timeout would block the event loop. The writer retries instead.
        connection.execute("PRAGMA busy_timeout = 0")
    except BaseException:
        connection.close()
        raise
    return connection


def _upgrade(connection: sqlite3.Connection, statements: str) -> None:
    connection.executescript(f"BEGIN IMMEDIATE; {statements} PRAGMA user_version = {FORMAT}; COMMIT")


def _check_format(path: Path, connection: sqlite3.Connection) -> None:
    found = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if found > FORMAT:
        with closing(connection):
            raise LogFileError(
                f"{path} was written by a newer version of this product (format {found}; this version reads up to "
                f"{FORMAT}). Update the product, or choose another directory with DATA_DIR (or EVENT_LOG=memory)."
            )
    if found not in _READABLE_FORMATS or not {"task", "event", "message"} <= tables:
        with closing(connection):
            raise LogFileError(
                f"{path} is not an event log of this version (format {found}, not {FORMAT}). Move it away, or choose "
                "another directory with DATA_DIR."
            )
