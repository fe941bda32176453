"""Damage inside a database file, and errors of the disk.

Opening a file reads its first pages only, so damage in the middle would be found by a later query. A check reads all
pages, at 2 ms of CPU time per megabyte.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from ai_platform_engineering.storage.sqlite.owned_file import reason
from ai_platform_engineering.storage.sqlite.shared_file import is_busy

MAX_BYTES_AT_START: Final = 32_000_000
"""Larger files would delay the start too much."""

_PRIMARY_CODE: Final = 0xFF
_DAMAGE: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_FILE_ERRORS: Final = _DAMAGE | {
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
}


def check_pages(connection: sqlite3.Connection) -> None:
    """Raise `sqlite3.DatabaseError` if a page of the file is damaged."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError("database disk image is malformed")


def is_checked_at_start(path: Path) -> bool:
    return path.stat().st_size <= MAX_BYTES_AT_START


def is_file_error(error: Exception) -> bool:
    """Whether the file or its disk is the reason, not the statement or another connection."""
    return _primary_code(error) in _FILE_ERRORS


def is_damage(error: Exception) -> bool:
    return _primary_code(error) in _DAMAGE


def _primary_code(error: Exception) -> int:
    code: int = getattr(error, "sqlite_errorcode", None) or sqlite3.SQLITE_OK
    return code & _PRIMARY_CODE


def advice(error: Exception) -> str:
    """What to do about a file that cannot be used, as the beginning of a sentence."""
    match error:
        case IsADirectoryError():
            return "Move that directory away"
        case sqlite3.OperationalError() | OSError():
            return "Check that the directory is writable and the disk is not full"
        case _:
            return "Restore it from a backup, move it away to begin a new one"


def damaged_files(paths: Iterable[Path]) -> list[str]:
    """A sentence for each database file that cannot be read. The smallest are checked first, up to the limit in all."""
    found, total = [], 0
    for size, path in sorted((path.stat().st_size, path) for path in paths):
        total += size
        if total > MAX_BYTES_AT_START:
            break
        try:
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
                check_pages(connection)
        except (sqlite3.Error, OSError) as error:
            if not is_busy(error):
                found.append(f"{path} cannot be used: {reason(error)}. {advice(error)}, or set another DATA_DIR.")
    return found
