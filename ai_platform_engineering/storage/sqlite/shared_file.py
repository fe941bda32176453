"""A database file that several connections use at once."""

from __future__ import annotations

import sqlite3
import time
from typing import Final

_PAUSE_SECONDS: Final = 0.01
_PRIMARY_CODE: Final = 0xFF


def write_ahead(connection: sqlite3.Connection, seconds: float) -> None:
    """Switch the file to WAL mode, so that readers and a writer do not block each other.

    SQLite ignores the busy timeout when several connections switch a new file at the same moment: retry for `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_busy(error) or time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def is_busy(error: BaseException) -> bool:
    """Whether another connection holds a lock on the file."""
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
