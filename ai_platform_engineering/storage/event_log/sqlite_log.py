"""The durable event log in a SQLite file. Followers see committed events only.

Running tasks are also in memory, so following them reads nothing from the disk. Other tasks are read on demand and
cached.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.identity.access import ConversationAccess
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.storage.event_log.batching import can_wait
from ai_platform_engineering.storage.event_log.conversations import ConversationPage, ConversationQuery
from ai_platform_engineering.storage.event_log.event_log import (
    Claim,
    Entry,
    FoundMessage,
    Observer,
    RecordedEffect,
    Snapshot,
    StoredRequest,
    SupersededError,
    TaskEndedError,
    TaskPage,
    TaskQuery,
    UnknownTaskError,
    prune_before_ns,
)
from ai_platform_engineering.storage.event_log.file import LogFile, open_for_reading
from ai_platform_engineering.storage.event_log.file_problem import FileProblem
from ai_platform_engineering.storage.event_log.log_errors import LogClosedError, LogWriteError, RequestNotStoredError
from ai_platform_engineering.storage.event_log.pruning import Pruned, delete_ended, prune_some
from ai_platform_engineering.storage.event_log.reader import (
    ReaderThreads,
    StoredTask,
    find_message,
    read_access,
    read_caller,
    read_conversations,
    read_effects,
    read_ended,
    read_histories,
    read_name,
    read_overdue,
    read_page,
    read_state,
    read_task,
    read_waiting,
    unfinished,
)
from ai_platform_engineering.storage.event_log.statements import (
    addition,
    begin_effect,
    claim,
    creation,
    finish_effect,
    insertion,
    rename,
    share,
)
from ai_platform_engineering.storage.event_log.task_cache import CachedTask, TaskCache
from ai_platform_engineering.storage.event_log.task_fold import breaks_off, ends_task
from ai_platform_engineering.storage.event_log.task_history import TaskHistory
from ai_platform_engineering.storage.event_log.task_record import TaskRecord, continues_after_end
from ai_platform_engineering.storage.event_log.writer import LogWriter, Write, error_for, result_for
from ai_platform_engineering.storage.sqlite.wal_checkpointer import WalCheckpointer
from ai_platform_engineering.storage.store_timer import NO_TIMER, StoreTimer
from ai_platform_engineering.utils.a2a_common.wire import WireEvent, stamp

logger = logging.getLogger(__name__)

T = TypeVar("T")


class SqliteEventLog:
    """Usable inside `opened`. One per file and process."""

    durable: ClassVar = True

    def __init__(self, path: Path, timer: StoreTimer = NO_TIMER) -> None:
        self._path = path
        self._timer = timer
        self._in_use: _InUse | None = None
        self._numbers = 0
        self._cache = TaskCache()
        self._loading: dict[str, asyncio.Future[CachedTask | None]] = {}
        self._retries: list[Write] = []
        self._observers: list[Observer] = []

    @property
    def problem(self) -> str | None:
        return None if self._in_use is None else self._in_use.problem.text

    def subscribe(self, observer: Observer) -> None:
        self._observers.append(observer)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        file = LogFile(self._path)
        try:
            self._numbers = file.connection.execute("SELECT coalesce(max(number), 0) FROM task").fetchone()[0]
            index = open_for_reading(self._path)
            wal_checkpointer = WalCheckpointer(self._path)
            writer = LogWriter(file.connection, wal_checkpointer.note_use, self._timer)
            readers, problem = ReaderThreads(self._path), FileProblem(self._path, writer)
            self._in_use = _InUse(writer, wal_checkpointer, readers, index, problem)
            checking = asyncio.create_task(problem.check_large(readers))
            try:
                yield self
            finally:
                checking.cancel()
                self._flush_retries()
                in_use, self._in_use = self._in_use, None
                in_use.problem.close()
                await in_use.writer.aclose()
                in_use.wal_checkpointer.close()
                in_use.readers.close()
                in_use.index.close()
        finally:
            file.close()

    async def create(self, task: Task, caller: Principal = ANONYMOUS, groups: frozenset[str] = frozenset()) -> None:
        if task.id in self._cache:
            raise ValueError(f"the event log already has task {task.id!r}")
        self._numbers += 1
        cached = CachedTask(self._numbers, TaskRecord(task))

        def settle(refusal: Exception | None) -> None:
            if refusal is not None:
                raise refusal
            self._cache.put(task.id, cached)

        creating = creation(cached.number, cached.record, caller, groups)
        await self._write(cached, creating, settle, is_request=True)

    async def add_message(self, task_id: str, message: Message, caller: Principal = ANONYMOUS) -> None:
        cached = await self._open(task_id)
        copy = Message()
        copy.CopyFrom(message)
        insert = addition(cached.number, cached.record.fold.context_id, cached.last, copy, caller)

        def settle(refusal: Exception | None) -> None:
            if refusal is not None:
                raise refusal
            cached.record.add_message(copy)
            self._cache.put(task_id, cached)

        await self._write(cached, insert, settle, is_request=True)

    async def request(self, task_id: str) -> StoredRequest | None:
        cached = await self._load(task_id)
        if cached is None:
            return None
        caller = await self._readers.run(lambda connection: read_caller(connection, cached.number))
        return cached.record.request(caller)

    async def find_message(self, context_id: str, message_id: str) -> FoundMessage | None:
        # Runs for every message to a conversation; see `waiting`.
        return find_message(self._parts.index, context_id, message_id)

    async def claim(self, task_id: str, progress: int) -> Claim:
        cached = await self._open(task_id)

        def settle(claim: Claim) -> Claim:
            cached.epoch = claim.epoch
            return claim

        return await self._write(cached, lambda connection: claim(connection, cached.number, progress), settle)

    async def claim_new(self, task_id: str) -> Claim | None:
        record = (await self._open(task_id)).record
        is_new = not record.last and record.turns == 1 and await self.waiting(record.fold.context_id) is None
        return await self.claim(task_id, 0) if is_new else None

    async def check_epoch(self, task_id: str, epoch: int) -> None:
        await self._claimed(task_id, epoch)

    async def begin_effect(
        self, task_id: str, call_id: str, epoch: int | None = None, *, result: str | None = None
    ) -> RecordedEffect | None:
        cached = await self._claimed(task_id, epoch)
        return await self._write(
            cached, lambda connection: begin_effect(connection, cached.number, call_id, result), lambda found: found
        )

    async def finish_effect(self, task_id: str, call_id: str, result: str, epoch: int | None = None) -> None:
        cached = await self._claimed(task_id, epoch)
        await self._write(
            cached, lambda connection: finish_effect(connection, cached.number, call_id, result), lambda _: None
        )

    async def effects(self, task_id: str, prefix: str) -> dict[str, RecordedEffect]:
        return await self._readers.run(lambda connection: read_effects(connection, task_id, prefix))

    async def append(self, task_id: str, events: Sequence[WireEvent], epoch: int | None = None) -> list[Entry]:
        cached = await self._open(task_id)
        _check_epoch(task_id, cached, epoch)
        if continues_after_end(events):
            raise TaskEndedError(task_id)
        for event in events:
            cached.last += 1
            stamp(event, cached.last)
        cached.ends = bool(events) and ends_task(events[-1])

        def settle(_: None) -> list[Entry]:
            entries = self._publish(task_id, cached, events)
            self._cache.put(task_id, cached)
            if cached.record.ended:
                self._store_folded(cached)
            return entries

        def publish_unstored() -> list[Entry]:
            entries = self._publish(task_id, cached, events)
            self._queue_retry(cached, insert)
            return entries

        insert = insertion(cached.number, events)
        return await self._write(
            cached,
            insert,
            settle,
            # On a full disk, followers must still see the end of a task that fails for that reason.
            otherwise=publish_unstored if breaks_off(events) else None,
            can_wait=can_wait(events),
        )

    async def read(self, task_id: str, after: int = 0) -> list[Entry]:
        return (await self._known(task_id)).record.entries(after)

    def end_following(self, task_id: str) -> None:
        if (cached := self._cache.get(task_id)) is not None:
            cached.record.end_following()

    def follow(self, task_id: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        cached = self._cache.get(task_id)
        if cached is None:
            return self._follow_stored(task_id, after)
        return cached.record.follow(after, cached.record.turns)

    async def state(self, task_id: str) -> TaskState | None:
        cached = self._cache.get(task_id)
        if cached is not None:
            return cached.record.fold.state
        return await self._readers.run(lambda connection: read_state(connection, task_id))

    async def snapshot(self, task_id: str, at: int | None = None) -> Snapshot | None:
        if at is None and task_id not in self._cache:
            ended = await self._readers.run(lambda connection: read_ended(connection, task_id))
            if ended is not None:
                seq, task = ended
                if seq:
                    task.metadata.fields["seq"].number_value = seq
                return Snapshot(seq, task)
        cached = await self._load(task_id)
        return None if cached is None else cached.record.snapshot(at)

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

    async def conversations(self, query: ConversationQuery) -> ConversationPage:
        return await self._readers.run(lambda connection: read_conversations(connection, query))

    async def histories(self, context_id: str) -> list[TaskHistory]:
        return await self._readers.run(lambda connection: read_histories(connection, context_id))

    async def name(self, context_id: str) -> str | None:
        return await self._readers.run(lambda connection: read_name(connection, context_id))

    async def rename(self, context_id: str, name: str | None) -> bool:
        return await self._maintain(lambda connection: rename(connection, context_id, name))

    async def access(self, context_id: str) -> ConversationAccess | None:
        # Runs for every message to a conversation; see `waiting`.
        return read_access(self._parts.index, context_id)

    async def share(self, context_id: str, groups: frozenset[str]) -> bool:
        return await self._maintain(lambda connection: share(connection, context_id, groups))

    async def waiting(self, context_id: str) -> str | None:
        # Runs for every message. A lookup in a small index never blocks; handing it to a thread costs fifty times more.
        return read_waiting(self._parts.index, context_id)

    async def overdue(self, before_ns: int) -> list[str]:
        return await self._readers.run(lambda connection: read_overdue(connection, before_ns))

    async def end_waiting(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        cached = await self._known(task_id)
        # Nothing is awaited between this check and the submission to the writer.
        return await self.append(task_id, events) if cached.record.waits and not cached.writes else []

    async def unfinished(self) -> list[tuple[str, str]]:
        return await self._readers.run(unfinished)

    async def prune(self, max_tasks: int, max_age_days: float) -> frozenset[str]:
        # A few at a time, so that running tasks do not wait.
        oldest_ns = prune_before_ns(max_age_days)
        conversations: set[str] = set()
        self._flush_retries()
        while True:
            pruned: Pruned = await self._parts.wal_checkpointer.run(
                lambda connection: prune_some(connection, max_tasks, oldest_ns)
            )
            for task_id in pruned.task_ids:
                self._cache.drop(task_id)
            conversations |= pruned.conversations
            if not pruned.task_ids:
                return frozenset(conversations)

    async def delete_conversation(self, context_id: str) -> int:
        self._flush_retries()
        task_ids = await self._parts.wal_checkpointer.run(lambda connection: delete_ended(connection, context_id))
        for task_id in task_ids:
            if (loading := self._loading.get(task_id)) is not None:
                await asyncio.wait([loading])  # it may have read the task before the deletion
            self._cache.drop(task_id)
        return len(task_ids)

    async def _maintain(self, change: Callable[[sqlite3.Connection], T]) -> T:
        """Change a conversation in the background thread."""
        try:
            return await self._parts.wal_checkpointer.run(change)
        except sqlite3.Error as error:
            logger.error("%s: the change of a conversation cannot be stored: %s", self._path, error)
            raise RequestNotStoredError("disk") from None

    @property
    def _readers(self) -> ReaderThreads:
        return self._parts.readers

    @property
    def _parts(self) -> _InUse:
        if self._in_use is None:
            raise LogClosedError
        return self._in_use

    async def _write(
        self,
        cached: CachedTask,
        work: Callable[[sqlite3.Connection], Any],
        settle: Callable[[Any], T],
        *,
        otherwise: Callable[[], T] | None = None,
        is_request: bool = False,
        can_wait: bool = False,
    ) -> T:
        """Commit `work`, then apply `settle` in memory, also when the caller was cancelled meanwhile.

        If the commit fails, `otherwise` is applied instead of raising `LogWriteError`.
        """
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        problem = self._parts.problem
        cached.writes += 1

        def committed(result: Any) -> None:
            cached.writes -= 1
            try:
                settled = settle(result)
            except Exception as error:  # the caller waits for it
                error_for(done)(error)
            else:
                result_for(done)(settled)
            problem.clear()
            self._flush_retries()

        def failed(error: Exception) -> None:
            logger.error("%s: the events of a task cannot be stored: %s", self._path, error)
            problem.note(error)
            cached.writes -= 1
            cached.roll_back()
            if otherwise is None:
                error_for(done)(RequestNotStoredError("disk") if is_request else LogWriteError("disk"))
            else:
                result_for(done)(otherwise())
                cached.roll_back()

        self._parts.writer.submit(Write(cached.number, work, committed, failed), can_wait=can_wait)
        return await done

    def _publish(self, task_id: str, cached: CachedTask, events: Sequence[WireEvent]) -> list[Entry]:
        """Show events to followers and observers."""
        entries = cached.record.append(events)
        for observer in self._observers:
            observer(task_id, entries)
        return entries

    def _queue_retry(self, cached: CachedTask, work: Callable[[sqlite3.Connection], Any]) -> None:
        """Store events that were shown and could not be stored with the next write that succeeds."""
        cached.writes += 1

        def stored(_: Any) -> None:
            cached.writes -= 1
            self._store_folded(cached)

        def failed(_: Exception) -> None:
            self._retries.append(write)

        write = Write(cached.number, work, stored, failed)
        self._retries.append(write)

    def _flush_retries(self) -> None:
        retries, self._retries = self._retries, []
        for write in retries:
            self._parts.writer.submit(write)

    def _store_folded(self, cached: CachedTask) -> None:
        """Store an ended task as a whole, so that reading it does not need its events."""
        body = cached.record.fold.task().SerializeToString()
        task_id = cached.record.submitted.id
        cached.writes += 1

        def update(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE task SET folded = ? WHERE number = ?", (body, cached.number))

        def settle(_: Any) -> None:
            cached.writes -= 1
            if self._cache.get(task_id) is cached:  # it was not deleted meanwhile
                self._cache.put(task_id, cached)

        # If this write fails, the task is folded from its events.
        self._parts.writer.submit_deferred(Write(cached.number, update, settle, settle))

    async def _open(self, task_id: str) -> CachedTask:
        cached = self._cache.get(task_id) or await self._known(task_id)
        if cached.ends:
            raise TaskEndedError(task_id)
        return cached

    async def _claimed(self, task_id: str, epoch: int | None) -> CachedTask:
        cached = await self._known(task_id)
        _check_epoch(task_id, cached, epoch)
        return cached

    async def _known(self, task_id: str) -> CachedTask:
        cached = await self._load(task_id)
        if cached is None:
            raise UnknownTaskError(task_id)
        return cached

    async def _load(self, task_id: str) -> CachedTask | None:
        cached = self._cache.get(task_id)
        if cached is not None:
            return cached
        loading = self._loading.get(task_id)
        if loading is None:
            loading = asyncio.ensure_future(self._read_cached(task_id))
            self._loading[task_id] = loading
        # Shielded: several callers may wait for one load, and the first may be cancelled.
        return await asyncio.shield(loading)

    async def _read_cached(self, task_id: str) -> CachedTask | None:
        try:
            stored: StoredTask | None = await self._readers.run(lambda connection: read_task(connection, task_id))
            if stored is None:
                return None
            cached = CachedTask(stored.number, stored.record)
            self._cache.put(task_id, cached)
            return cached
        finally:
            del self._loading[task_id]

    async def _follow_stored(self, task_id: str, after: int) -> AsyncIterator[Sequence[Entry]]:
        record = (await self._known(task_id)).record
        async for entries in record.follow(after, record.turns):
            yield entries


@dataclass(frozen=True, slots=True)
class _InUse:
    writer: LogWriter
    wal_checkpointer: WalCheckpointer
    readers: ReaderThreads
    index: sqlite3.Connection
    problem: FileProblem


def _check_epoch(task_id: str, cached: CachedTask, epoch: int | None) -> None:
    # One process owns the file, so its own claims are the only ones.
    if epoch not in (None, cached.epoch):
        raise SupersededError(task_id)
