"""The only writer of a log file: it commits the writes of all tasks together.

It runs on the event loop. A commit of a few events takes about 60 microseconds and does not wait for the disk. In a
thread each statement would wait for the interpreter lock, at ten times the cost, or a hundred times on a busy loop. The
WAL checkpointer does the work that waits for the disk.

An idle log commits immediately; under load, writes are batched for a moment.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ai_platform_engineering.storage.sqlite.shared_file import is_busy

logger = logging.getLogger(__name__)

_GATHER_SECONDS: Final = 0.002
_BUSY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Write:
    """`work` runs inside a transaction; then `settle` or `fail`, in order.

    When one of a task's writes fails, those behind it fail too: they build on it.
    """

    task: int
    work: Callable[[sqlite3.Connection], Any]
    settle: Callable[[Any], None]
    fail: Callable[[Exception], None]


@dataclass(frozen=True, slots=True)
class _Outcome:
    write: Write
    result: Any = None
    error: Exception | None = None


class LogWriter:
    """Created and used on the event loop. `committed` is called after every commit.

    The connection must not block while another one writes, for example the WAL checkpointer: the writer retries without
    blocking the loop.
    """

    def __init__(self, connection: sqlite3.Connection, committed: Callable[[], None]) -> None:
        self._connection = connection
        self._committed = committed
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Write] = []
        self._along: list[Write] = []
        self._scheduled: asyncio.Handle | None = None
        self._not_before = 0.0
        self._busy_since: float | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(self, write: Write) -> None:
        self._waiting.append(write)
        self._idle.clear()
        self._schedule()

    def submit_along(self, write: Write) -> None:
        """Nobody waits for it: it is committed with the next write that comes, or at the end."""
        self._along.append(write)

    async def aclose(self) -> None:
        """Commit what is waiting."""
        await self._idle.wait()
        if self._along:
            self.submit(self._along.pop())
            await self._idle.wait()

    def _schedule(self) -> None:
        if self._scheduled is not None:
            return
        pause = self._not_before - self._loop.time()
        if pause > 0:
            self._scheduled = self._loop.call_later(pause, self._write)
        else:
            self._scheduled = self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._scheduled = None
        self._not_before = self._loop.time() + _GATHER_SECONDS
        if not self._begins():
            self._schedule()
            return
        batch = [*self._waiting, *self._along]
        self._waiting, self._along = [], []
        self._settle(self._commit(batch))
        if not self._waiting:
            self._idle.set()

    def _begins(self) -> bool:
        """Not while somebody else is writing, unless that takes too long; the commit says what else is wrong."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            now = self._loop.time()
            self._busy_since = self._busy_since or now
            if is_busy(error) and now - self._busy_since < _BUSY_SECONDS:
                return False
        self._busy_since = None
        return True

    def _settle(self, outcomes: Sequence[_Outcome]) -> None:
        for outcome in outcomes:
            try:
                if outcome.error is None:
                    outcome.write.settle(outcome.result)
                else:
                    outcome.write.fail(outcome.error)
            except Exception:  # one task's trouble must not stop the others
                logger.exception("what was committed could not be shown")

    def _commit(self, batch: Sequence[Write]) -> Sequence[_Outcome]:
        connection = self._connection
        try:
            if not connection.in_transaction:
                connection.execute("BEGIN IMMEDIATE")
            outcomes = [_Outcome(write, write.work(connection)) for write in batch]
            connection.execute("COMMIT")
        except Exception as error:
            self._roll_back()
            if len(batch) == 1:
                return [_Outcome(batch[0], error=error)]
            return self._commit_singly(batch)
        self._committed()
        return outcomes

    def _commit_singly(self, batch: Sequence[Write]) -> Sequence[_Outcome]:
        """One that is too large for the disk, say, does not take the others along."""
        outcomes: list[_Outcome] = []
        failed: dict[int, Exception] = {}
        for write in batch:
            error = failed.get(write.task)
            outcome = _Outcome(write, error=error) if error else self._commit([write])[0]
            if outcome.error is not None:
                failed[write.task] = outcome.error
            outcomes.append(outcome)
        return outcomes

    def _roll_back(self) -> None:
        # SQLite ends the transaction by itself on some errors, a full disk among them.
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                logger.exception("a transaction of the event log could not be rolled back")
