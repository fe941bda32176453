"""The connections to the SQLite file: as many readers as there are threads, one writer at a time."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_file import (
    Connection,
    connect,
    file_at,
    prepare,
    unusable,
)
from ai_platform_engineering.knowledge_bases.rag.stores.store import StoreError

logger = logging.getLogger(__name__)

_MAX_IDLE: Final = 4
"""Each holds some megabytes of the file in memory."""


class Connections:
    """Lent for one operation, and some kept for the next. Every failure leaves here as a `StoreError`.

    Whoever moves the file away or puts another in its place needs no restart: SQLite would go on in the file that it
    once opened, which nobody else sees any more, so each operation looks whether that is still the one.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._idle: list[Connection] = []
        self._lending = threading.Lock()
        self._writing = threading.Lock()
        self._closed = False
        self._file = prepare(path)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """What is read in the block is one state of the file."""
        with self._lent() as connection, _transaction(connection, "BEGIN"):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """What is written in the block is kept whole or, when it raises, not at all."""
        with self._writing, self._lent() as connection, _transaction(connection, "BEGIN IMMEDIATE"):
            yield connection

    def close(self) -> None:
        """Connections that are lent are closed when they come back."""
        with self._lending:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    @contextmanager
    def _lent(self) -> Iterator[Connection]:
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._give_back(connection)
        except sqlite3.Error as error:
            raise unusable(self.path, error) from error
        except UnicodeEncodeError as error:
            raise StoreError(f"{error.object[:80]!r} is not text that can be kept or looked for.") from error

    def _take(self) -> Connection:
        with self._lending:
            if self._closed:
                raise StoreError(f"The knowledge base in {self.path} is closed.")
            if file_at(self.path) != self._file:
                logger.warning("%s was removed or replaced; what is there now is read from here on", self.path)
                while self._idle:
                    self._idle.pop().close()
                self._file = prepare(self.path)
            if self._idle:
                return self._idle.pop()
        return connect(self.path)

    def _give_back(self, connection: Connection) -> None:
        with self._lending:
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
        # A full disk has SQLite roll back on its own.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
