"""The one writer of a log file: a thread that commits what all tasks have to write together.

While a commit is under way, and for a moment after a busy one, what comes is gathered into the next. Somebody who
writes into a quiet log does not wait for company.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Final

logger = logging.getLogger(__name__)

_GATHER_SECONDS: Final = 0.002


@dataclass(frozen=True, slots=True)
class Write:
    """`work` runs in the thread, inside a transaction; then `settle` or `fail` on the event loop, in order.

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
    """Made and used on the event loop. Only one batch is under way at a time, so nothing overtakes a failure."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Write] = []
        self._along: list[Write] = []
        self._batches: SimpleQueue[Sequence[Write] | None] = SimpleQueue()
        self._under_way = False
        self._scheduled: asyncio.Handle | None = None
        self._not_before = 0.0
        self._idle = asyncio.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._run, name="event-log", daemon=True)
        self._thread.start()

    def submit(self, write: Write) -> None:
        self._waiting.append(write)
        self._idle.clear()
        self._schedule()

    def submit_along(self, write: Write) -> None:
        """Nobody waits for it: it is committed with the next write that comes, or at the end."""
        self._along.append(write)

    async def aclose(self) -> None:
        """Commit what is waiting, then end the thread."""
        await self._idle.wait()
        if self._along:
            self.submit(self._along.pop())
            await self._idle.wait()
        self._batches.put(None)
        await asyncio.to_thread(self._thread.join)

    def _schedule(self) -> None:
        if self._under_way or self._scheduled is not None:
            return
        pause = self._not_before - self._loop.time()
        if pause > 0:
            self._scheduled = self._loop.call_later(pause, self._hand_over)
        else:
            self._scheduled = self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._scheduled = None
        batch = [*self._waiting, *self._along]
        self._waiting, self._along = [], []
        self._under_way = True
        self._not_before = self._loop.time() + _GATHER_SECONDS
        self._batches.put(batch)

    def _settle(self, outcomes: Sequence[_Outcome]) -> None:
        for outcome in outcomes:
            try:
                if outcome.error is None:
                    outcome.write.settle(outcome.result)
                else:
                    outcome.write.fail(outcome.error)
            except Exception:  # one task's trouble must not stop the others
                logger.exception("what was committed could not be shown")
        self._under_way = False
        self._fail_behind({outcome.write.task: outcome.error for outcome in outcomes if outcome.error is not None})
        if self._waiting:
            self._schedule()
        else:
            self._idle.set()

    def _fail_behind(self, failed: Mapping[int, Exception]) -> None:
        behind = [write for write in self._waiting if write.task in failed]
        self._waiting = [write for write in self._waiting if write.task not in failed]
        for write in behind:
            write.fail(failed[write.task])

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            outcomes = self._commit(batch)
            self._loop.call_soon_threadsafe(self._settle, outcomes)

    def _commit(self, batch: Sequence[Write]) -> Sequence[_Outcome]:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            outcomes = [_Outcome(write, write.work(connection)) for write in batch]
            connection.execute("COMMIT")
        except Exception as error:
            self._roll_back()
            if len(batch) == 1:
                return [_Outcome(batch[0], error=error)]
            return self._commit_singly(batch)
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
