"""A database file that one process at a time may write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from ai_platform_engineering.storage.sqlite.shared_file import is_busy
from ai_platform_engineering.utils.private_files import create_private_file


class FileInUseError(Exception):
    """Another process owns the file."""


def own(path: Path) -> sqlite3.Connection:
    """Lock the file, creating it for this user only if it does not exist.

    The lock is released when the returned connection is closed or the process ends. Readers need no lock.
    """
    create_private_file(lock_path(path))
    lock = sqlite3.connect(lock_path(path), timeout=0, isolation_level=None)
    try:
        lock.execute("BEGIN EXCLUSIVE")
        create_private_file(path)
    except BaseException as error:
        lock.close()
        if is_busy(error):
            raise FileInUseError(path) from None
        raise
    return lock


def lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def reason(error: Exception) -> str:
    """The reason of a failure, for a sentence that names the file."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
