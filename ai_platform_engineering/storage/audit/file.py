"""SQLite file with the audit record. Several processes may write it; it is created with the first entry.

A commit waits for the disk. The head is also written to a file beside the record, after the commit: a head that is
ahead of the record shows that entries were removed from its end, not that a process was killed.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Final

from ai_platform_engineering.audit.log import AuditUnavailableError
from ai_platform_engineering.audit.record import (
    AuditFact,
    Entry,
    EntryError,
    Head,
    Seal,
    chained,
    cut_fact,
    early_end,
    prunable,
)
from ai_platform_engineering.storage.checkup import StoreCheckup, is_writable
from ai_platform_engineering.storage.sqlite.owned_file import reason
from ai_platform_engineering.storage.sqlite.shared_file import write_ahead
from ai_platform_engineering.utils.private_files import create_private_file

logger = logging.getLogger(__name__)

FORMAT: Final = 1
_BUSY_SECONDS: Final = 5.0
_HEAD_LENGTH: Final = 256
_TABLES: Final = (
    "CREATE TABLE entry (seq INTEGER PRIMARY KEY, line TEXT NOT NULL)",
    "CREATE TRIGGER entry_is_final BEFORE UPDATE ON entry "
    "BEGIN SELECT RAISE(ABORT, 'entries of the audit record are not changed'); END",
    f"PRAGMA user_version = {FORMAT}",
)


class AuditFile:
    """`retention_ns` is the age at which entries are deleted; 0 keeps them."""

    def __init__(self, path: Path, seal: Seal, retention_ns: int = 0) -> None:
        self._path = path
        self._seal = seal
        self._retention_ns = retention_ns
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._written: Head | None = None
        """The last entry of this process."""

    def append(self, facts: Sequence[AuditFact]) -> Head:
        with self._lock:
            self._open()
            # Before the record: another process may append an entry between the two reads.
            stored_head = self.head() if self._written is None else None
            with self._transaction() as connection:
                last = _last(connection)
                cut = early_end(last, self._written) if self._written else cut_fact(last, stored_head, self._seal)
                head = self._insert(connection, last, [cut, *facts] if cut else facts)
            self._written = head
            self._write_head(head)
            return head

    def prune(self) -> None:
        if not self._retention_ns or not self._path.exists():
            return
        with self._lock, self._transaction() as connection:
            rows = connection.execute("SELECT line FROM entry ORDER BY seq")
            pruned = prunable((Entry.read(line) for (line,) in rows), self._retention_ns)
            rows.close()
            if pruned is not None:
                fact = AuditFact("entries_pruned", count=pruned.seq, anchor=pruned.hash)
                self._insert(connection, _last(connection), [fact])
                connection.execute("DELETE FROM entry WHERE seq <= ?", (pruned.seq,))

    def head(self) -> str | None:
        """The head in the file beside the record; None if there is none."""
        try:
            return head_path(self._path).read_text(errors="replace").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unusable(head_path(self._path), error) from error

    @contextmanager
    def open_lines(self, *, newest_first: bool = False) -> Iterator[Iterator[str]]:
        """The entries of the record. Other processes may write at the same time."""
        if not self._path.exists():
            yield iter(())
            return
        order = "DESC" if newest_first else "ASC"
        try:
            with closing(_connect_for_reading(self._path)) as connection:
                if _is_empty(connection):  # it is created at this moment
                    yield iter(())
                    return
                rows = connection.execute(f"SELECT line FROM entry ORDER BY seq {order}")  # noqa: S608
                yield (str(line) for (line,) in rows)
        except sqlite3.Error as error:
            raise _unusable(self._path, error) from error

    def check_up(self, name: str) -> StoreCheckup:
        found = StoreCheckup.of_file(name, self._path)
        if not is_writable(self._path):
            return found.failed(str(_unusable(self._path, PermissionError(0, "it cannot be written"))))
        if not found.exists:
            return found
        try:
            with closing(_connect_for_reading(self._path)) as connection:
                query = "SELECT 0" if _is_empty(connection) else "SELECT count(*) FROM entry"
                (count,) = connection.execute(query).fetchone()
        except sqlite3.Error as error:
            return found.failed(str(_unusable(self._path, error)))
        except AuditUnavailableError as error:
            return found.failed(str(error))
        return found.opened(entries=count, format=FORMAT)

    def close(self) -> None:
        with self._lock:
            self._close()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._connected()
            except (sqlite3.Error, OSError) as error:
                raise _unusable(self._path, error) from error
        return self._connection

    def _connected(self) -> sqlite3.Connection:
        create_private_file(self._path)
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            write_ahead(connection, _BUSY_SECONDS)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("BEGIN IMMEDIATE")
            if _is_empty(connection):
                for statement in _TABLES:
                    connection.execute(statement)
                # Before the commit: a record without a head is one whose head was removed.
                self._write_head(Head())
            connection.execute("COMMIT")
            _check_format(self._path, connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        connection = self._open()
        try:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            # Closing rolls the transaction back. A new connection also finds a file that was replaced.
            self._close()
            if isinstance(error, sqlite3.Error | OSError | EntryError):
                raise _unusable(self._path, error) from error
            raise

    def _insert(self, connection: sqlite3.Connection, last: Entry | None, facts: Sequence[AuditFact]) -> Head:
        entries = [*chained(Head.of(last), facts, self._seal)]
        connection.executemany("INSERT INTO entry VALUES (?, ?)", [(entry.seq, entry.line()) for entry in entries])
        return Head.of(entries[-1])

    def _write_head(self, head: Head) -> None:
        # In place and of one length: the replacement of a file would wait for the disk.
        try:
            file = os.open(head_path(self._path), os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.pwrite(file, head.line(self._seal).ljust(_HEAD_LENGTH).encode(), 0)
            finally:
                os.close(file)
        except OSError as error:  # the entries are stored; the head of the next ones replaces this one
            logger.warning("%s was not written: %s", head_path(self._path), reason(error))


def head_path(path: Path) -> Path:
    return path.with_suffix(".head")


def _last(connection: sqlite3.Connection) -> Entry | None:
    row = connection.execute("SELECT line FROM entry ORDER BY seq DESC LIMIT 1").fetchone()
    return Entry.read(row[0]) if row else None


def _connect_for_reading(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_BUSY_SECONDS)
    try:
        if not _is_empty(connection):
            _check_format(path, connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_empty(connection: sqlite3.Connection) -> bool:
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not tables


def _check_format(path: Path, connection: sqlite3.Connection) -> None:
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found != FORMAT:
        raise _unusable(path, ValueError(f"it has format {found}, not {FORMAT}"))


def _unusable(path: Path, error: Exception) -> AuditUnavailableError:
    why = "its last entry cannot be read" if isinstance(error, EntryError) else reason(error)
    return AuditUnavailableError(
        f"{path} cannot be used for the audit record: {why}. Check the directory and the disk, or choose "
        "another one with DATA_DIR. Move a damaged file away, with its head, to begin a new one."
    )
