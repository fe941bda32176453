"""A database file that belongs to one process at a time, and is read by nobody else."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ai_platform_engineering.storage.sqlite.shared_file import is_busy
from ai_platform_engineering.utils.private_files import create_private_file


class FileInUseError(Exception):
    """Another process has the file."""


def own(path: Path) -> sqlite3.Connection:
    """Make the file if there is none, for this user alone, and keep other processes from owning it until the
    connection that is returned is closed, or the process ends, however it ends. Readers do not ask."""
    lock_path = path.with_name(f"{path.name}.lock")
    create_private_file(lock_path)
    lock = sqlite3.connect(lock_path, timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
        create_private_file(path)
    except BaseException as error:
        lock.close()
        if is_busy(error):
            raise FileInUseError(path) from None
        raise
    return lock


def reason(error: Exception) -> str:
    """Why the file could not be used, as part of a sentence that names it."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
