"""The bot's file: what is in it, how it is opened, and what is said when it cannot be used.

SQLite in WAL mode with `synchronous=NORMAL`: a commit is in the operating system's hands when it returns, so a killed
bot loses nothing, and no commit waits for the disk. Only a power cut can take the last moments, and it leaves the file
sound.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from ai_platform_engineering.storage.sqlite.owned_file import FileInUseError, own, reason
from ai_platform_engineering.utils.errors import ReadableError

FORMAT: Final = 1
# A run's state is long, so that pages are larger than usual. Every so many the log goes into the file, and the bot
# waits for the disk: 4 MB take it some milliseconds.
_PAGE_BYTES: Final = 8192
_WAL_PAGES: Final = 500
# The bot is deaf while it waits for somebody who writes to its file by hand, and Slack waits three seconds.
_BUSY_SECONDS: Final = 1.0

# What is large comes last in a row, so that finding one does not read it.
_TABLES: Final = """
CREATE TABLE heard (event TEXT PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX heard_by_age ON heard (at);
CREATE TABLE session (place TEXT PRIMARY KEY, context_id TEXT NOT NULL, last_used REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX session_by_age ON session (last_used);
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    place TEXT NOT NULL,
    begun REAL NOT NULL,
    done INTEGER NOT NULL,
    context_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    trace_id TEXT NOT NULL,
    seen INTEGER NOT NULL,
    incoming TEXT NOT NULL,
    state BLOB NOT NULL
);
CREATE INDEX run_by_place ON run (place, begun);
CREATE INDEX run_by_task ON run (task_id, begun);
CREATE INDEX run_by_age ON run (done, begun);
"""
_OUR_TABLES: Final = frozenset({"heard", "session", "run"})


class StoreError(ReadableError):
    """The file cannot be used, or not any more; the sentence names it and the way out."""


class StoreFile:
    """The file, open, for this process alone: two bots would answer everything twice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._lock = own(path)
        except FileInUseError:
            raise StoreError(
                f"{path} is in use by another Slack bot. Stop that one, or give this one a directory of its own with "
                "DATA_DIR."
            ) from None
        except (sqlite3.Error, OSError) as error:
            raise unusable(path, error) from error
        try:
            self.connection = _prepared(path)
        except BaseException as error:
            self._lock.close()
            if isinstance(error, sqlite3.Error):
                raise unusable(path, error) from error
            raise

    def close(self) -> None:
        self.connection.close()
        self._lock.close()


def unreadable(path: Path) -> StoreError:
    return StoreError(f"{path} holds a run that this version of the Slack bot cannot read. {_MOVE_AWAY}.")


def unusable(path: Path, error: Exception) -> StoreError:
    # The low byte is the kind of an error, the rest its details.
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return StoreError(f"{path} cannot be used by the Slack bot: {reason(error)}. {_WAYS_OUT.get(kind, _CHECK)}.")


_MOVE_AWAY: Final = (
    "Stop the bot and move the file away (threads then begin anew), or choose another directory with DATA_DIR"
)
_CHECK: Final = (
    "Check that the directory can be written and has room, choose another one with DATA_DIR, or set "
    "SLACK_SESSIONS=memory"
)
_WAYS_OUT: Final = {
    sqlite3.SQLITE_FULL: "Make room on the disk, or choose another directory with DATA_DIR",
    sqlite3.SQLITE_BUSY: "Close what else writes to it",
    sqlite3.SQLITE_NOTADB: _MOVE_AWAY,
    sqlite3.SQLITE_CORRUPT: _MOVE_AWAY,
}


def _prepared(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
    try:
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute("BEGIN IMMEDIATE")
        if _is_new(path, connection):
            for statement in _TABLES.split(";\n"):
                connection.execute(statement)
        # Written each time: a file that cannot be written is found out now and not by the first question.
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_new(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether there is nothing in it yet; raises where there is something that is not ours."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if found > FORMAT:
        raise StoreError(
            f"{path} was written by a newer version of the Slack bot (format {found}; this one knows {FORMAT}). Update "
            "this one, or choose another directory with DATA_DIR."
        )
    if tables and not (found == FORMAT and tables >= _OUR_TABLES):
        raise StoreError(f"{path} is a database of something else. {_MOVE_AWAY}.")
    return not tables
