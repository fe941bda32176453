"""The thread that waits for the disk, so that nobody else has to.

A commit into SQLite's write-ahead log waits for nothing: it is in the operating system's memory. Moving that log into
the file does wait for the disk, and deleting much takes its time. Both are done here, over a connection of its own.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

_BUSY_SECONDS: Final = 10.0
_MOMENT_SECONDS: Final = 0.05
_USES_BETWEEN: Final = 500


class WalCheckpointer:
    """For a file that is in WAL mode and whose other connections do not move its log themselves."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"keeper-of-{path.stem}")
        self._uses = 0

    def note_use(self) -> None:
        """To be told whenever something was or will be committed: now and then the log is moved."""
        self._uses += 1
        if self._uses >= _USES_BETWEEN:
            self._uses = 0
            self._thread.submit(self._move_log)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do something in a transaction of its own."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._transaction, work)

    def close(self) -> None:
        self._thread.shutdown()
        self._connection.close()

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(self._connection)
            self._connection.execute("COMMIT")
        except BaseException:
            # SQLite ends the transaction by itself on some errors, a full disk among them.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return result

    def _move_log(self) -> None:
        try:
            # Most of it while others go on writing; what they wrote meanwhile while they wait for a moment, as the log
            # can only begin anew when nothing is left in it. Somebody may be reading in it: then it is the next time.
            self._checkpoint("PASSIVE")
            self._wait_for_others(_MOMENT_SECONDS)
            try:
                is_whole = self._checkpoint("RESTART")
            finally:
                self._wait_for_others(_BUSY_SECONDS)
            if is_whole:
                # The first commit into a log that begins anew waits for the disk: that shall be this one.
                self._transaction(_write_nothing)
        except sqlite3.Error as error:  # a full disk, say; the next time may go better
            logger.warning("%s: its write-ahead log could not be moved: %s", self._path, error)

    def _checkpoint(self, mode: str) -> bool:
        """Whether nobody was in the way."""
        busy, _, _ = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        return not busy

    def _wait_for_others(self, seconds: float) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")


def _write_nothing(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version}")
