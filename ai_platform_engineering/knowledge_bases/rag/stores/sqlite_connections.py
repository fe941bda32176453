"""The connection pool of the SQLite store: one connection for each reading thread, one writer at a time."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_file import (
    FileConnection,
    connect,
    file_identity,
    prepare,
    unusable,
)
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStoreError

logger = logging.getLogger(__name__)

_MAX_IDLE: Final = 4
"""Each idle connection holds some megabytes of the file in memory."""


class SqliteConnections:
    """A connection is used for one operation and then returned. Database errors become `KnowledgeStoreError`s.

    The file can be moved away or replaced without a restart. SQLite would go on with the file that it once opened, so
    each operation checks that the path still leads to that file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[FileConnection] = []
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._closed = False
        self._file = prepare(path)

    @contextmanager
    def reading(self) -> Iterator[FileConnection]:
        """In a read transaction: the block sees one state of the file."""
        with self._connection() as connection, _transaction(connection, "BEGIN"):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[FileConnection]:
        """In a write transaction, which is rolled back if the block raises."""
        with self._write_lock, self._connection() as connection, _transaction(connection, "BEGIN IMMEDIATE"):
            yield connection

    def close(self) -> None:
        """Connections in use are closed when they are returned."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _connection(self) -> Iterator[FileConnection]:
        try:
            connection = self._acquire()
            try:
                yield connection
            finally:
                self._release(connection)
        except sqlite3.Error as error:
            raise unusable(self.path, error) from error
        except UnicodeEncodeError as error:
            raise KnowledgeStoreError(
                f"{error.object[:80]!r} is not text that can be stored or searched for."
            ) from error

    def _acquire(self) -> FileConnection:
        with self._lock:
            if self._closed:
                raise KnowledgeStoreError(f"The knowledge base in {self.path} is closed.")
            if file_identity(self.path) != self._file:
                logger.warning("%s was removed or replaced; the file at this path is opened again", self.path)
                while self._idle:
                    self._idle.pop().close()
                self._file = prepare(self.path)
            if self._idle:
                return self._idle.pop()
        return connect(self.path)

    def _release(self, connection: FileConnection) -> None:
        with self._lock:
            if not self._closed and connection.file == self._file and len(self._idle) < _MAX_IDLE:
                self._idle.append(connection)
                return
        connection.close()


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite itself rolls back when the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
