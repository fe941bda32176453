"""Background thread for SQLite maintenance: WAL checkpoints and bulk deletes.

A commit to the write-ahead log does not wait for the disk. A checkpoint does, and a bulk delete takes long. This thread
does both on a connection of its own.
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
    """For a file in WAL mode whose other connections have automatic checkpoints switched off."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"wal-checkpointer-{path.stem}")
        self._uses = 0

    def note_use(self) -> None:
        """Count a commit; every so many commits start a checkpoint."""
        self._uses += 1
        if self._uses >= _USES_BETWEEN:
            self._uses = 0
            self._thread.submit(self._checkpoint_log)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction on this thread."""
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

    def _checkpoint_log(self) -> None:
        try:
            # PASSIVE moves most of the log while others go on writing. RESTART blocks writers for a moment and moves
            # the rest, because only an empty log is overwritten from its beginning. A reader may prevent that until
            # the next checkpoint.
            self._checkpoint("PASSIVE")
            self._wait_for_others(_MOMENT_SECONDS)
            try:
                is_whole = self._checkpoint("RESTART")
            finally:
                self._wait_for_others(_BUSY_SECONDS)
            if is_whole:
                # The first commit after a RESTART waits for the disk. An empty one here spares the writers that wait.
                self._transaction(_write_nothing)
        except sqlite3.Error as error:  # for example a full disk; the next checkpoint may succeed
            logger.warning("%s: WAL checkpoint failed: %s", self._path, error)

    def _checkpoint(self, mode: str) -> bool:
        """Whether the checkpoint was complete."""
        busy, _, _ = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        return not busy

    def _wait_for_others(self, seconds: float) -> None:
        self._connection.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")


def _write_nothing(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version = {version}")
