"""The writer of the log in Postgres: commits the writes of all tasks of this process, in batches, over one connection.

An idle log commits immediately. Events that arrive within 5 ms are the next batch; other writes, which a run or a
caller waits for, are committed at once, and the pending events with them. The writes of one task are committed in the
order of submission.

When the connection breaks, the writer connects again and repeats the writes. It first finds out which of them were
committed, so none is applied twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import errors

from ai_platform_engineering.storage.event_log.batching import BATCH_SECONDS, can_wait
from ai_platform_engineering.storage.event_log.event_log import SupersededError, TaskEndedError, UnknownTaskError
from ai_platform_engineering.storage.event_log.log_errors import LogWriteError, RequestNotStoredError
from ai_platform_engineering.storage.event_log.postgres.problem import LogProblem
from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress
from ai_platform_engineering.storage.event_log.postgres.statements import (
    APPEND,
    APPENDED,
    WHY_NOT,
    Append,
    Row,
    Write,
    append_parameters,
)
from ai_platform_engineering.storage.postgres.async_connections import STATEMENT_SECONDS, Connection, connect
from ai_platform_engineering.storage.store_timer import NO_TIMER, StoreTimer
from ai_platform_engineering.utils.background_tasks import stop_tasks

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 8.0
"""How long a write of a running task is repeated while the server is away: a failover takes some seconds."""

_MAX_BATCH: Final = 200
"""Notifications have at most 8000 bytes; this many tasks fit."""
_MIN_RECONNECT_SECONDS: Final = 0.05
_MAX_RECONNECT_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 5.0
# Beside a broken connection: a server that starts or stops, or is no longer the primary.
_AWAY: Final = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.ReadOnlySqlTransaction)

AnyWrite: TypeAlias = Write[Any] | Append


class PendingWrite:
    """A write, and the future of the rows it returns.

    `settle` is called with the row right after the commit, before the next batch begins.
    """

    __slots__ = ("can_wait", "deadline", "done", "is_repeated", "settle", "write")

    def __init__(self, write: AnyWrite, settle: Callable[[Row], Any], deadline: float) -> None:
        self.write = write
        self.can_wait = isinstance(write, Append) and can_wait(write.events)
        self.settle = settle
        self.deadline = deadline
        self.is_repeated = False
        self.done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def succeed(self, row: Row) -> None:
        try:
            result = self.settle(row)
        except Exception as error:  # must not affect the other tasks of the batch
            logger.exception("a committed write could not be applied in memory")
            self.fail(error)
        else:
            if not self.done.done():
                self.done.set_result(result)

    def write_error(self) -> LogWriteError:
        is_request = isinstance(self.write, Write) and self.write.is_urgent
        return RequestNotStoredError() if is_request else LogWriteError("database")

    def fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)
            # The caller may have been cancelled.
            self.done.exception()


class LogWriter:
    """`problem` notes why the server cannot be used."""

    def __init__(
        self, address: LogAddress, server: str, channel: str, problem: LogProblem, timer: StoreTimer = NO_TIMER
    ) -> None:
        self._timer = timer
        self._address = address
        self._server = server
        self._channel = channel
        self._problem = problem
        self._loop = asyncio.get_running_loop()
        self._queue: deque[PendingWrite] = deque()
        self._submitted = asyncio.Event()
        self._urgent = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._connection: Connection | None = None
        self._reconnect_delay = _MIN_RECONNECT_SECONDS
        self._reconnect_at = 0.0
        self._task = asyncio.create_task(self._run(), name="event-log-writer")

    @property
    def pid(self) -> int | None:
        """The server process of the connection."""
        connection = self._connection
        return None if connection is None or connection.closed else connection.info.backend_pid

    async def submit(self, write: AnyWrite, settle: Callable[[Row], Any], *, until_stored: bool = False) -> Any:
        """Commit a write and return what `settle` makes of its row, also if the caller is cancelled meanwhile.

        While the server is away, the write is repeated for a time; with `until_stored` as long as this process runs.
        """
        is_urgent = isinstance(write, Write) and write.is_urgent
        deadline = float("inf") if until_stored else self._loop.time() + (0 if is_urgent else RETRY_SECONDS)
        pending = PendingWrite(write, settle, deadline)
        self._queue.append(pending)
        self._idle.clear()
        self._submitted.set()
        if not pending.can_wait:
            self._urgent.set()
        return await pending.done

    async def aclose(self) -> None:
        """Commit the pending writes, unless the server is away."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._idle.wait()
        await stop_tasks(self._task)
        for pending in self._queue:
            pending.fail(pending.write_error())
        await self._disconnect()

    async def _run(self) -> None:
        while True:
            await self._submitted.wait()
            begun = self._loop.time()
            not_before = begun + BATCH_SECONDS
            batch = self._take()
            if all(pending.can_wait for pending in self._queue):
                self._urgent.clear()
            try:
                self._queue.extendleft(reversed(await self._commit(batch)))
            except asyncio.CancelledError:
                self._queue.extendleft(reversed(batch))
                raise
            except Exception as error:  # a defect must not stop the writes of all tasks
                logger.exception("a batch of writes failed")
                for pending in batch:
                    pending.fail(error)
            self._timer.observe("event_log", "postgres", "commit", self._loop.time() - begun)
            if not self._queue:
                self._submitted.clear()
                self._idle.set()
            if (pause := not_before - self._loop.time()) > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._urgent.wait()
            if (pause := self._reconnect_at - self._loop.time()) > 0:
                await asyncio.sleep(pause)

    def _take(self) -> list[PendingWrite]:
        """The next write of each task: the later ones build on it."""
        batch: dict[str, PendingWrite] = {}
        later: deque[PendingWrite] = deque()
        while self._queue and len(batch) < _MAX_BATCH:
            pending = self._queue.popleft()
            if pending.write.task_id in batch:
                later.append(pending)
            else:
                batch[pending.write.task_id] = pending
        later.extend(self._queue)
        self._queue = later
        return [*batch.values()]

    async def _commit(self, batch: list[PendingWrite]) -> list[PendingWrite]:
        """Commit all writes that can be committed; others fail. Returns those to repeat, because the server is away."""
        was_sent = False
        try:
            async with asyncio.timeout(STATEMENT_SECONDS + 5):
                connection = await self._connected()
                was_sent = True
                batch = await self._without_committed(connection, batch)
                settled = await self._execute(connection, batch)
        except (psycopg.Error, OSError, TimeoutError) as error:
            if self._is_away(error):
                await self._disconnect()
                self._problem.note(error)
                self._delay(failed_to_connect=not was_sent)
                return self._to_repeat(batch, was_sent=was_sent)
            if len(batch) > 1:
                return [again for pending in batch for again in await self._commit([pending])]
            logger.error("%s: the events of a task cannot be stored: %s", self._address, error)
            for pending in batch:
                pending.fail(pending.write_error())
            return []
        self._problem.clear()
        for settle in settled:
            settle()
        return []

    def _delay(self, *, failed_to_connect: bool) -> None:
        """Reconnect immediately after a broken connection, then with a growing delay."""
        self._reconnect_delay = min(2 * self._reconnect_delay, _MAX_RECONNECT_SECONDS) if failed_to_connect else 0.0
        self._reconnect_at = self._loop.time() + self._reconnect_delay
        self._reconnect_delay = max(self._reconnect_delay, _MIN_RECONNECT_SECONDS)

    def _to_repeat(self, batch: Iterable[PendingWrite], *, was_sent: bool) -> list[PendingWrite]:
        """Fail the writes whose time is over. A connection that breaks is not the end: the server may have restarted
        since it was last used."""
        now = self._loop.time()
        repeated = []
        for pending in batch:
            if not was_sent and now >= pending.deadline:
                pending.fail(pending.write_error())
            else:
                pending.is_repeated = pending.is_repeated or was_sent
                repeated.append(pending)
        return repeated

    async def _without_committed(self, connection: Connection, batch: list[PendingWrite]) -> list[PendingWrite]:
        """Settle the appends whose commit was not confirmed before the connection broke."""
        rest = []
        for pending in batch:
            if pending.is_repeated and isinstance(append := pending.write, Append) and append.events:
                parameters = {"server": self._server, "id": append.task_id, "write_id": append.write_id}
                row = await (await connection.execute(APPENDED, parameters)).fetchone()
                if row is not None:
                    pending.succeed(row)
                    continue
            rest.append(pending)
        return rest

    async def _execute(self, connection: Connection, batch: Sequence[PendingWrite]) -> list[Callable[[], None]]:
        """Execute a batch in one transaction. Returns what to do when it is committed."""
        appends = [(pending, pending.write) for pending in batch if isinstance(pending.write, Append)]
        others = [(pending, pending.write) for pending in batch if isinstance(pending.write, Write)]
        if not others:
            return await self._append(connection, appends)
        if not appends and len(others) == 1:
            [(pending, write)] = others
            cursor = await connection.execute(write.statement, write.parameters)
            return [await self._outcome(connection, pending, await cursor.fetchone())]
        async with connection.pipeline(), connection.transaction():
            added = await connection.execute(APPEND, self._parameters(appends)) if appends else None
            cursors = [await connection.execute(write.statement, write.parameters) for _, write in others]
        settled = await self._appended(connection, appends, await added.fetchall()) if added is not None else []
        for (pending, _), cursor in zip(others, cursors, strict=True):
            settled.append(await self._outcome(connection, pending, await cursor.fetchone()))
        return settled

    async def _append(
        self, connection: Connection, appends: Sequence[tuple[PendingWrite, Append]]
    ) -> list[Callable[[], None]]:
        cursor = await connection.execute(APPEND, self._parameters(appends))
        return await self._appended(connection, appends, await cursor.fetchall())

    async def _appended(
        self, connection: Connection, appends: Sequence[tuple[PendingWrite, Append]], rows: Iterable[Row]
    ) -> list[Callable[[], None]]:
        by_place = {place: (before, messages) for place, before, messages, _ in rows}
        return [
            await self._outcome(connection, pending, by_place.get(place)) for place, (pending, _) in enumerate(appends)
        ]

    async def _outcome(self, connection: Connection, pending: PendingWrite, row: Row | None) -> Callable[[], None]:
        if row is not None:
            return lambda: pending.succeed(row)
        error = await self._why_not(connection, pending.write)
        return lambda: pending.fail(error)

    async def _why_not(self, connection: Connection, write: AnyWrite) -> Exception:
        """Why a write found no task to write to."""
        row = await (await connection.execute(WHY_NOT, (write.task_id, self._server))).fetchone()
        if row is None:
            return UnknownTaskError(write.task_id)
        has_ended, epoch = row
        needs_open_task = isinstance(write, Append) or write.needs_open_task
        if write.epoch not in (None, epoch):
            return SupersededError(write.task_id)
        if has_ended and needs_open_task:
            return TaskEndedError(write.task_id)
        return NothingWrittenError(write.task_id)

    def _parameters(self, appends: Iterable[tuple[PendingWrite, Append]]) -> dict[str, Any]:
        return append_parameters(self._server, self._channel, [append for _, append in appends])

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await connect(self._address.conninfo)
        return self._connection

    async def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error, OSError):
                await connection.close()

    def _is_away(self, error: Exception) -> bool:
        is_broken = self._connection is None or self._connection.closed or self._connection.broken
        return is_broken or not isinstance(error, psycopg.Error) or isinstance(error, _AWAY)


class NothingWrittenError(LookupError):
    """The condition of a write does not hold: the task does not wait, or exists already."""
