"""The durable event log: nothing is shown that is not in the file.

Tasks that are worked on are also in memory, so that following them reads nothing from the disk. Tasks that rest are
read when somebody asks and kept in memory for a while.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar
from weakref import WeakValueDictionary

from a2a.types.a2a_pb2 import Message, Task, TaskState, TaskStatusUpdateEvent

from ai_platform_engineering.storage.event_log.event_log import (
    Entry,
    Snapshot,
    TaskEndedError,
    TaskPage,
    TaskQuery,
    UnknownTaskError,
    oldest_kept_ns,
)
from ai_platform_engineering.storage.event_log.file import LogFile, open_for_reading
from ai_platform_engineering.storage.event_log.pruning import Pruned, prune_some
from ai_platform_engineering.storage.event_log.reader import (
    StoredTask,
    read_ended,
    read_overdue,
    read_page,
    read_state,
    read_task,
    read_waiting,
    unfinished,
)
from ai_platform_engineering.storage.event_log.task_fold import ends_task
from ai_platform_engineering.storage.event_log.task_record import TaskRecord, goes_on_after_its_end
from ai_platform_engineering.storage.event_log.writer import LogWriter, Write
from ai_platform_engineering.storage.sqlite.wal_checkpointer import WalCheckpointer
from ai_platform_engineering.utils.a2a_common.wire import WireEvent, seq_of, stamp
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

T = TypeVar("T")

_ENDED_EVENTS: Final = 20_000
# Those that wait for a person may be many and wait long: enough for those who look on while a task comes to rest.
_WAITING_EVENTS: Final = 500
_READERS: Final = 2
_BROKEN: Final = frozenset({TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED})


class LogWriteError(ReadableError):
    """What happened could not be kept, so it was not shown either."""

    def __init__(self) -> None:
        super().__init__(
            "The server cannot store the events of this task, so the work was stopped and the last outcome is unknown. "
            "Its log says why. When the disk has room again, check what was done before you ask again."
        )


class LogClosedError(ReadableError):
    """Something was to be written or read before the start or after the end."""

    code = "stopped"

    def __init__(self) -> None:
        super().__init__("The server is not running. Ask again when it is.")


class _Held:
    """A task in memory, and what was given to the writer but is not committed yet."""

    __slots__ = ("__weakref__", "ends", "last", "messages", "number", "record", "writes")

    def __init__(self, number: int, record: TaskRecord) -> None:
        self.number = number
        self.record = record
        self.writes = 0
        self.take_back()

    def take_back(self) -> None:
        """What was given out and not committed is taken back."""
        self.last = self.record.last
        self.messages = self.record.turns - 1
        self.ends = self.record.ended


class _AtRest:
    """Tasks that were looked at lately, up to a number of events."""

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._held: OrderedDict[str, _Held] = OrderedDict()
        self._events = 0

    @property
    def events(self) -> int:
        return self._events

    def keep(self, task_id: str, held: _Held) -> None:
        self._held[task_id] = held
        self._events += held.record.last
        while self._events > self._max_events and len(self._held) > 1:
            _, oldest = self._held.popitem(last=False)
            self._events -= oldest.record.last

    def drop(self, task_id: str) -> None:
        held = self._held.pop(task_id, None)
        if held is not None:
            self._events -= held.record.last


class SqliteEventLog:
    """Used while `opened`. One per file and process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._in_use: _InUse | None = None
        self._numbers = 0
        # A task is in memory once, for as long as anybody has it in hand; the next three decide for how long that is.
        self._held: WeakValueDictionary[str, _Held] = WeakValueDictionary()
        self._active: dict[str, _Held] = {}
        self._ended = _AtRest(_ENDED_EVENTS)
        self._waiting = _AtRest(_WAITING_EVENTS)
        self._loading: dict[str, asyncio.Future[_Held | None]] = {}
        self._owed: list[Write] = []

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        file = LogFile(self._path)
        try:
            self._numbers = file.connection.execute("SELECT coalesce(max(number), 0) FROM task").fetchone()[0]
            index = open_for_reading(self._path)
            wal_checkpointer = WalCheckpointer(self._path)
            writer = LogWriter(file.connection, wal_checkpointer.note_use)
            self._in_use = _InUse(writer, wal_checkpointer, _Readers(self._path), index)
            try:
                yield self
            finally:
                self._pay()
                in_use, self._in_use = self._in_use, None
                await in_use.writer.aclose()
                in_use.wal_checkpointer.close()
                in_use.readers.close()
                in_use.index.close()
        finally:
            file.close()

    async def create(self, task: Task) -> None:
        if task.id in self._held:
            raise _known(task.id)
        self._numbers += 1
        held = _Held(self._numbers, TaskRecord(task))
        now = time.time_ns()
        row = (
            held.number,
            task.id,
            task.context_id,
            task.status.state,
            now,
            held.record.fold.changed_ns,
            now if held.record.ended else None,
            task.SerializeToString(),
        )

        def insert(connection: sqlite3.Connection) -> bool:
            cursor = connection.execute(
                "INSERT OR IGNORE INTO task"
                " (number, id, context_id, state, created_ns, changed_ns, ended_ns, submitted)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                row,
            )
            return cursor.rowcount == 1

        def settle(is_new: bool) -> None:
            if not is_new:
                raise _known(task.id)
            self._hold(task.id, held)

        await self._write(held, insert, settle)

    async def add_message(self, task_id: str, message: Message) -> None:
        held = await self._open(task_id)
        kept = Message()
        kept.CopyFrom(message)
        row = (held.number, held.messages, held.last, kept.SerializeToString())
        held.messages += 1

        def insert(connection: sqlite3.Connection) -> None:
            connection.execute("INSERT INTO message (task, place, after, body) VALUES (?, ?, ?, ?)", row)

        def settle(_: None) -> None:
            held.record.add_message(kept)
            self._hold(task_id, held)

        await self._write(held, insert, settle)

    async def append(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        held = await self._open(task_id)
        if goes_on_after_its_end(events):
            raise TaskEndedError(task_id)
        for event in events:
            held.last += 1
            stamp(event, held.last)
        held.ends = bool(events) and ends_task(events[-1])

        def settle(_: None) -> list[Entry]:
            entries = held.record.append(events)
            self._hold(task_id, held)
            if held.record.ended:
                self._keep_folded(held)
            return entries

        def show_unkept() -> list[Entry]:
            entries = held.record.append(events)
            self._owe(held, _insertion(held.number, events))
            return entries

        # A task that breaks off because the disk is full has to end for those who follow it all the same.
        breaks_off = held.ends and _state_of(events[-1]) in _BROKEN
        return await self._write(
            held, _insertion(held.number, events), settle, otherwise=show_unkept if breaks_off else None
        )

    async def read(self, task_id: str, after: int = 0) -> list[Entry]:
        return (await self._known(task_id)).record.entries(after)

    def follow(self, task_id: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        held = self._held.get(task_id)
        if held is None:
            return self._follow_stored(task_id, after)
        return held.record.follow(after, held.record.turns)

    async def state(self, task_id: str) -> TaskState | None:
        held = self._held.get(task_id)
        if held is not None:
            return held.record.fold.state
        return await self._readers.run(lambda connection: read_state(connection, task_id))

    async def snapshot(self, task_id: str, at: int | None = None) -> Snapshot | None:
        if at is None and task_id not in self._held:
            ended = await self._readers.run(lambda connection: read_ended(connection, task_id))
            if ended is not None:
                seq, task = ended
                if seq:
                    task.metadata.fields["seq"].number_value = seq
                return Snapshot(seq, task)
        held = await self._load(task_id)
        return None if held is None else held.record.snapshot(at)

    async def task(self, task_id: str, at: int | None = None) -> Task | None:
        snapshot = await self.snapshot(task_id, at)
        return None if snapshot is None else snapshot.task

    async def tasks(self, query: TaskQuery) -> TaskPage:
        page = await self._readers.run(lambda connection: read_page(connection, query))
        tasks = [row.task or await self.task(row.id) for row in page.rows]
        last = page.rows[-1] if page.rows else None
        return TaskPage(
            tasks=[task for task in tasks if task is not None],
            total=page.total,
            next=(last.changed_ns, last.id) if last is not None and page.has_more else None,
        )

    async def waiting(self, context_id: str) -> str | None:
        # Asked for every message: a trip to a thread would cost fifty times as much as the look itself, which is one
        # into a small index and waits for nobody.
        return read_waiting(self._parts.index, context_id)

    async def overdue(self, before_ns: int) -> list[str]:
        return await self._readers.run(lambda connection: read_overdue(connection, before_ns))

    async def end_waiting(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        held = await self._known(task_id)
        # Nothing is awaited between this look and the moment the events are given to the writer.
        return await self.append(task_id, events) if held.record.waits and not held.writes else []

    async def unfinished(self) -> list[str]:
        """Tasks that somebody had begun, or had been told, to work on when the file was last written."""
        return list(await self._readers.run(unfinished))

    async def prune(self, max_tasks: int, max_age_days: float) -> frozenset[str]:
        """A few at a time, so that running tasks do not wait."""
        oldest_ns = oldest_kept_ns(max_age_days)
        conversations: set[str] = set()
        self._pay()
        while True:
            pruned: Pruned = await self._parts.wal_checkpointer.run(
                lambda connection: prune_some(connection, max_tasks, oldest_ns)
            )
            for task_id in pruned.task_ids:
                self._forget(task_id)
            conversations |= pruned.conversations
            if not pruned.task_ids:
                return frozenset(conversations)

    @property
    def _writer(self) -> LogWriter:
        return self._parts.writer

    @property
    def _readers(self) -> _Readers:
        return self._parts.readers

    @property
    def _parts(self) -> _InUse:
        if self._in_use is None:
            raise LogClosedError
        return self._in_use

    async def _write(
        self,
        held: _Held,
        work: Callable[[sqlite3.Connection], Any],
        settle: Callable[[Any], T],
        *,
        otherwise: Callable[[], T] | None = None,
    ) -> T:
        """Have `work` committed, then `settle` it in memory, whether or not the caller still waits for that.

        If it cannot be committed, `otherwise` has the last word, where there is one.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        held.writes += 1

        def committed(result: Any) -> None:
            held.writes -= 1
            try:
                settled = settle(result)
            except ValueError as error:
                _error_for(done)(error)
            else:
                _result_for(done)(settled)
            self._pay()

        def failed(error: Exception) -> None:
            logger.error("%s: what happens in a task cannot be kept: %s", self._path, error)
            held.writes -= 1
            held.take_back()
            if otherwise is None:
                _error_for(done)(LogWriteError())
            else:
                _result_for(done)(otherwise())
                held.take_back()

        self._writer.submit(Write(held.number, work, committed, failed))
        return await done

    def _owe(self, held: _Held, work: Callable[[sqlite3.Connection], Any]) -> None:
        """What was shown and could not be kept is kept as soon as that is possible; until then memory has it."""
        held.writes += 1

        def paid(_: Any) -> None:
            held.writes -= 1
            self._keep_folded(held)

        def unpaid(_: Exception) -> None:
            self._owed.append(write)

        write = Write(held.number, work, paid, unpaid)
        self._owed.append(write)

    def _pay(self) -> None:
        owed, self._owed = self._owed, []
        for write in owed:
            self._writer.submit(write)

    def _keep_folded(self, held: _Held) -> None:
        """What became of an ended task, so that looking at it does not take all of its events."""
        body = held.record.fold.task().SerializeToString()
        held.writes += 1

        def update(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE task SET folded = ? WHERE number = ?", (body, held.number))

        def settle(_: Any) -> None:
            held.writes -= 1
            self._hold(held.record.submitted.id, held)

        # Without it the task is folded from its events.
        self._writer.submit_along(Write(held.number, update, settle, settle))

    async def _open(self, task_id: str) -> _Held:
        held = self._held.get(task_id) or await self._known(task_id)
        if held.ends:
            raise TaskEndedError(task_id)
        return held

    async def _known(self, task_id: str) -> _Held:
        held = await self._load(task_id)
        if held is None:
            raise UnknownTaskError(task_id)
        return held

    async def _load(self, task_id: str) -> _Held | None:
        held = self._held.get(task_id)
        if held is not None:
            return held
        loading = self._loading.get(task_id)
        if loading is None:
            loading = asyncio.ensure_future(self._read_held(task_id))
            self._loading[task_id] = loading
        # Shielded: the first who asks may leave while others wait for the same.
        return await asyncio.shield(loading)

    async def _read_held(self, task_id: str) -> _Held | None:
        try:
            stored: StoredTask | None = await self._readers.run(lambda connection: read_task(connection, task_id))
            if stored is None:
                return None
            held = _Held(stored.number, stored.record)
            self._hold(task_id, held)
            return held
        finally:
            del self._loading[task_id]

    async def _follow_stored(self, task_id: str, after: int) -> AsyncIterator[Sequence[Entry]]:
        record = (await self._known(task_id)).record
        async for entries in record.follow(after, record.turns):
            yield entries

    def _hold(self, task_id: str, held: _Held) -> None:
        self._forget(task_id)
        self._held[task_id] = held
        if held.writes or not held.record.resting:
            self._active[task_id] = held
            return
        (self._ended if held.record.ended else self._waiting).keep(task_id, held)

    def _forget(self, task_id: str) -> None:
        self._held.pop(task_id, None)
        self._active.pop(task_id, None)
        self._ended.drop(task_id)
        self._waiting.drop(task_id)


class _Readers:
    """A few threads that read, each with a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connections: list[sqlite3.Connection] = []
        self._local = threading.local()
        self._threads = ThreadPoolExecutor(_READERS, thread_name_prefix="event-log-reader")

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, work)

    def close(self) -> None:
        self._threads.shutdown()
        for connection in self._connections:
            connection.close()

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = open_for_reading(self._path, check_same_thread=False)
            self._local.connection = connection
            self._connections.append(connection)
        return work(connection)


@dataclass(frozen=True, slots=True)
class _InUse:
    writer: LogWriter
    wal_checkpointer: WalCheckpointer
    readers: _Readers
    index: sqlite3.Connection


def _insertion(number: int, events: Sequence[WireEvent]) -> Callable[[sqlite3.Connection], None]:
    """Keeps events that have their numbers."""
    now = time.time_ns()
    rows = []
    change = None
    for event in events:
        is_status = isinstance(event, TaskStatusUpdateEvent)
        rows.append((number, seq_of(event), now, is_status, event.SerializeToString()))
        if isinstance(event, TaskStatusUpdateEvent):
            ended_ns = now if ends_task(event) else None
            change = (event.status.state, event.status.timestamp.ToNanoseconds(), ended_ns, number)

    def insert(connection: sqlite3.Connection) -> None:
        connection.executemany("INSERT INTO event (task, seq, at_ns, is_status, body) VALUES (?, ?, ?, ?, ?)", rows)
        if change is not None:
            connection.execute("UPDATE task SET state = ?, changed_ns = ?, ended_ns = ? WHERE number = ?", change)

    return insert


def _state_of(event: WireEvent) -> TaskState | None:
    return event.status.state if isinstance(event, TaskStatusUpdateEvent) else None


def _known(task_id: str) -> ValueError:
    return ValueError(f"the event log already has task {task_id!r}")


def _result_for(future: asyncio.Future[T]) -> Callable[[T], None]:
    def settle(result: T) -> None:
        if not future.done():
            future.set_result(result)

    return settle


def _error_for(future: asyncio.Future[Any]) -> Callable[[Exception], None]:
    def fail(error: Exception) -> None:
        if not future.done():
            future.set_exception(error)

    return fail
