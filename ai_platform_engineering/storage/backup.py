"""Copies the data directory while its processes run: databases with SQLite's backup API, other files as they are."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ai_platform_engineering.storage.sqlite.owned_file import reason
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.private_files import create_private_file, product_files

_BUSY_SECONDS: Final = 10.0
_DATABASES: Final = frozenset({".db", ".sqlite"})
# Lock files belong to the running processes. SQLite's other files are part of the copy of their database.
_NOT_COPIED: Final = (".lock", "-wal", "-shm", "-journal")


class BackupError(ReadableError):
    """Nothing was copied. The text has the reason."""


@dataclass(frozen=True, slots=True)
class CopiedFile:
    name: str
    size: int


def back_up(data_dir: Path, target: Path) -> list[CopiedFile]:
    """Copy the product's files to `target`, a directory that is empty or does not exist. Complete, or not there."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise BackupError(f"{target} is not an empty directory. Choose another one.")
    files = [path for path in product_files(data_dir) if path.is_file() and not path.name.endswith(_NOT_COPIED)]
    if not files:
        raise BackupError(f"{data_dir} has no files of this product. Set DATA_DIR as for the server.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    except OSError as error:
        raise BackupError(f"{target} cannot be created: {reason(error)}.") from error
    try:
        _copy(files, unfinished)
        unfinished.replace(target)
    except OSError as error:
        raise BackupError(f"{target} cannot be written: {reason(error)}.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return [CopiedFile(path.name, (target / path.name).stat().st_size) for path in files]


def _copy(files: list[Path], target: Path) -> None:
    databases = [path for path in files if path.suffix in _DATABASES]
    # Before the databases: the head of the audit record must not be ahead of the record.
    for path in files:
        if path not in databases:
            create_private_file(target / path.name)
            shutil.copyfile(path, target / path.name)
    with ExitStack() as stack:
        # All databases as of one moment. The tasks come first: a form is in the checkpoints before its task shows it.
        databases.sort(key=lambda path: not path.name.startswith("tasks"))
        snapshots = [(path, stack.enter_context(_snapshot(path))) for path in databases]
        for path, connection in snapshots:
            create_private_file(target / path.name)
            try:
                with closing(sqlite3.connect(target / path.name)) as copy:
                    connection.backup(copy)
            except sqlite3.Error as error:
                raise BackupError(f"{path} cannot be copied: {reason(error)}.") from error


@contextmanager
def _snapshot(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that sees the database as it is now. Other processes may go on writing."""
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS, isolation_level=None
        )
    except sqlite3.Error as error:
        raise BackupError(f"{path} cannot be opened: {reason(error)}.") from error
    with closing(connection):
        try:
            connection.execute("BEGIN")
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # begins the read transaction
        except sqlite3.Error as error:
            raise BackupError(f"{path} cannot be read: {reason(error)}.") from error
        yield connection
