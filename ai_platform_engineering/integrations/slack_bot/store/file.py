"""The bot's SQLite file: its schema, opening it, and the errors when it cannot be used.

WAL mode with `synchronous=NORMAL`: a commit has reached the operating system when it returns, so a killed process loses
nothing, and commits do not wait for the disk. A power failure may lose the last commits, but does not corrupt the file.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.sqlite.owned_file import FileInUseError, own, reason
from ai_platform_engineering.utils.errors import ReadableError

FORMAT: Final = 1
# The state of a run is long, so pages are larger than the default. A WAL checkpoint blocks the bot; with 500 pages
# (4 MB) it takes a few milliseconds.
_PAGE_BYTES: Final = 8192
_WAL_PAGES: Final = 500
# The event loop is blocked while SQLite waits for another writer, and Slack expects a response within three seconds.
_BUSY_SECONDS: Final = 1.0

# Large columns come last in a row, so that queries for the others do not read them.
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


def store_file(settings: Settings) -> Path:
    return settings.data_dir / "slack.sqlite"


class BotStoreError(ReadableError):
    """The file cannot be used. The message names the file and the way out."""


class StoreFile:
    """The open file, locked for this process: two bots on one file would answer every message twice."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._lock = own(path)
        except FileInUseError:
            raise BotStoreError(
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


def unreadable(path: Path) -> BotStoreError:
    return BotStoreError(f"{path} holds a run that this version of the Slack bot cannot read. {_MOVE_AWAY}.")


def unusable(path: Path, error: Exception) -> BotStoreError:
    # The low byte is the primary error code.
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return BotStoreError(f"{path} cannot be used by the Slack bot: {reason(error)}. {_REMEDIES.get(kind, _CHECK)}.")


async def check_up_bot_file(settings: Settings) -> StoreCheckup | None:
    """The row of `platform-engineer doctor`; None if no bot has stored anything here."""
    path = store_file(settings)
    found = StoreCheckup.of_file("store of the Slack bot", path)
    if settings.slack_sessions != "sqlite" or not found.exists:
        return None
    try:
        threads = await asyncio.to_thread(_count_threads, path)
    except BotStoreError as error:
        return found.failed(str(error))
    return found.opened(threads=threads)


def _count_threads(path: Path) -> int:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            if _is_new(path, connection):
                return 0
            (count,) = connection.execute("SELECT count(*) FROM session").fetchone()
            return int(count)
    except sqlite3.Error as error:
        raise unusable(path, error) from error


_MOVE_AWAY: Final = (
    "Stop the bot and move the file away (threads then start new conversations), or choose another directory with "
    "DATA_DIR"
)
_CHECK: Final = (
    "Check that the directory can be written and has room, choose another one with DATA_DIR, or set "
    "SLACK_SESSIONS=memory"
)
_REMEDIES: Final = {
    sqlite3.SQLITE_FULL: "Make room on the disk, or choose another directory with DATA_DIR",
    sqlite3.SQLITE_BUSY: "Close the other program that writes to it",
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
        # Written at every start, so that a read-only file fails now and not at the first message.
        connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_new(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether the file is empty. Raises if it has another format or belongs to another program."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if found > FORMAT:
        raise BotStoreError(
            f"{path} was written by a newer version of the Slack bot (format {found}; this one knows {FORMAT}). Update "
            "this one, or choose another directory with DATA_DIR."
        )
    if tables and not (found == FORMAT and tables >= _OUR_TABLES):
        raise BotStoreError(f"{path} is the database of another program. {_MOVE_AWAY}.")
    return not tables
