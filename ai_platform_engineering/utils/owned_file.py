"""A database file that belongs to one process at a time, and is read by nobody else."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from ai_platform_engineering.utils.shared_file import is_busy


class FileInUseError(Exception):
    """Another process has the file."""


def own(path: Path) -> sqlite3.Connection:
    """Make the file if there is none, for this user alone, and keep other processes from owning it until the
    connection that is returned is closed, or the process ends, however it ends. Readers do not ask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = sqlite3.connect(path.with_name(f"{path.name}.lock"), timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
        # SQLite gives its other files the mode of this one.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    except BaseException as error:
        lock.close()
        if is_busy(error):
            raise FileInUseError(path) from None
        raise
    return lock


def reason(error: Exception) -> str:
    """Why the file could not be used, as part of a sentence that names it."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
