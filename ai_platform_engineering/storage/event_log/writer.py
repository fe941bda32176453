"""The writer of a log file: commits the writes of all tasks in batches.

It runs on the event loop: a commit of a few events takes about 60 microseconds and does not wait for the disk. In a
thread each statement would wait for the interpreter lock, which costs ten times as much, or a hundred times under load.
The WAL checkpointer does what waits for the disk.

An idle log commits immediately. Events that follow within 5 ms are batched; other writes, which a run or a caller waits
for, are committed at once, and the pending events with them.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from ai_platform_engineering.storage.event_log.batching import BATCH_SECONDS
from ai_platform_engineering.storage.sqlite.shared_file import is_busy
from ai_platform_engineering.storage.store_timer import NO_TIMER, StoreTimer

logger = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_SECONDS: Final = 0.002
_BUSY_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Write:
    """`work` runs in a transaction, then `settle` or `fail` is called, in order of submission.

    If a write of a task fails, the later writes of that task in the batch fail too, because they build on it.
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

    The connection must have no busy timeout. While another connection writes, for example the WAL checkpointer, the
    writer retries without blocking the loop.
    """

    def __init__(
        self, connection: sqlite3.Connection, committed: Callable[[], None], timer: StoreTimer = NO_TIMER
    ) -> None:
        self._connection = connection
        self._committed = committed
        self._timer = timer
        self._loop = asyncio.get_running_loop()
        self._pending: list[Write] = []
        self._deferred: list[Write] = []
        self._scheduled: asyncio.Handle | None = None
        self._scheduled_at = 0.0
        self._not_before = 0.0
        self._retry_at = 0.0
        self._busy_since: float | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def submit(self, write: Write, *, can_wait: bool = False) -> None:
        """`can_wait`: the write may be committed with a later batch."""
        self._pending.append(write)
        self._idle.clear()
        self._schedule(self._not_before if can_wait else self._retry_at)

    def submit_deferred(self, write: Write) -> None:
        """Commit a write with the next batch, or at the close."""
        self._deferred.append(write)

    async def aclose(self) -> None:
        """Commit all pending writes."""
        await self._idle.wait()
        if self._deferred:
            self.submit(self._deferred.pop())
            await self._idle.wait()

    def _schedule(self, when: float) -> None:
        """Write at that time, or earlier if that is scheduled already."""
        if self._scheduled is not None:
            if self._scheduled_at <= when:
                return
            self._scheduled.cancel()
        self._scheduled_at = when
        if when > self._loop.time():
            self._scheduled = self._loop.call_at(when, self._write)
        else:
            self._scheduled = self._loop.call_soon(self._write)

    def _write(self) -> None:
        self._scheduled = None
        now = self._loop.time()
        self._not_before = now + BATCH_SECONDS
        begun = self._busy_since or now
        if not self._begin():
            self._retry_at = now + _RETRY_SECONDS
            self._schedule(self._retry_at)
            return
        batch = [*self._pending, *self._deferred]
        self._pending, self._deferred = [], []
        outcomes = self._commit(batch)
        self._timer.observe("event_log", "sqlite", "commit", self._loop.time() - begun)
        self._settle(outcomes)
        if not self._pending:
            self._idle.set()

    def _begin(self) -> bool:
        """Begin a transaction. False while another connection writes, until a timeout. The commit reports errors."""
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
            except Exception:  # must not affect the other tasks of the batch
                logger.exception("a committed write could not be applied in memory")

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
        """Commit each write alone, so that one that fails does not fail the others."""
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
        # Some errors, for example a full disk, make SQLite roll back by itself.
        if self._connection.in_transaction:
            try:
                self._connection.execute("ROLLBACK")
            except sqlite3.Error:
                logger.exception("a transaction of the event log could not be rolled back")


def result_for(future: asyncio.Future[T]) -> Callable[[T], None]:
    """A `settle` that sets the result of `future`, unless the task that awaits it was cancelled."""

    def settle(result: T) -> None:
        if not future.done():
            future.set_result(result)

    return settle


def error_for(future: asyncio.Future[Any]) -> Callable[[Exception], None]:
    def fail(error: Exception) -> None:
        if not future.done():
            future.set_exception(error)

    return fail
