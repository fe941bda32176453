"""The event log in Postgres. Any number of processes share it; each follows the writes of all.

A process has a copy of the tasks that it writes or follows. Its own events reach its followers from memory, right after
their commit; the events of other processes are read when a notification says that they exist.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar, Final, LiteralString, Self, TypeVar

import psycopg
from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.identity.access import ConversationAccess
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.storage.event_log.conversations import ConversationPage, ConversationQuery
from ai_platform_engineering.storage.event_log.event_log import (
    Claim,
    Entry,
    ForeignConversationError,
    FoundMessage,
    Observer,
    RecordedEffect,
    RepeatedMessageError,
    Snapshot,
    StoredRequest,
    SupersededError,
    TaskEndedError,
    TaskPage,
    TaskQuery,
    UnknownTaskError,
    prune_before_ns,
)
from ai_platform_engineering.storage.event_log.log_errors import LogClosedError, LogReadError
from ai_platform_engineering.storage.event_log.postgres import pruning, statements
from ai_platform_engineering.storage.event_log.postgres.listener import LogListener
from ai_platform_engineering.storage.event_log.postgres.problem import LogProblem
from ai_platform_engineering.storage.event_log.postgres.reader import LogReader
from ai_platform_engineering.storage.event_log.postgres.replicas import Replica, Replicas
from ai_platform_engineering.storage.event_log.postgres.schema import LOG_SCHEMA, LogAddress
from ai_platform_engineering.storage.event_log.postgres.statements import Append, Row
from ai_platform_engineering.storage.event_log.postgres.writer import LogWriter, NothingWrittenError
from ai_platform_engineering.storage.event_log.task_fold import breaks_off, ends_task
from ai_platform_engineering.storage.event_log.task_history import TaskHistory
from ai_platform_engineering.storage.event_log.task_record import TaskRecord, continues_after_end
from ai_platform_engineering.storage.postgres.async_connections import STATEMENT_SECONDS, AsyncPool, Connection
from ai_platform_engineering.storage.postgres.connections import storable
from ai_platform_engineering.storage.store_timer import NO_TIMER, StoreTimer
from ai_platform_engineering.utils.a2a_common.wire import WireEvent, stamp
from ai_platform_engineering.utils.background_tasks import stop_tasks

logger = logging.getLogger(__name__)

T = TypeVar("T")

_READ_CONNECTIONS: Final = 4
_READ_SECONDS: Final = 3.0
"""How long a query waits for a server that is away."""
_RETRY_SECONDS: Final = 0.05
_LOCK_SECONDS: Final = 1.0
"""How long a claim waits for the transaction of another process."""
# Time limits of Postgres do not end a transaction whose statements arrive in a pipeline without its end.
_END_BLOCKING: Final[LiteralString] = (
    "SELECT pid FROM unnest(pg_blocking_pids(%s)) AS pid WHERE pg_terminate_backend(pid)"
)
_CLOSE_SECONDS: Final = 2.0
_BROKEN: Final = (psycopg.OperationalError, psycopg.InterfaceError, OSError)


class PostgresEventLog:
    """Usable inside `opened`. `server` is the supervisor or an agent; each sees its own tasks only."""

    durable: ClassVar = True

    def __init__(self, address: LogAddress, server: str = SUPERVISOR, timer: StoreTimer = NO_TIMER) -> None:
        self._address = address
        self._timer = timer
        self._server = server
        self._channel = f"event_log_{server}"
        self._in_use: _InUse | None = None
        self._replicas = Replicas()
        self._loading: dict[str, asyncio.Future[Replica | None]] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._observers: list[Observer] = []

    @property
    def problem(self) -> str | None:
        return self._in_use.problem.text if self._in_use is not None else None

    def subscribe(self, observer: Observer) -> None:
        self._observers.append(observer)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        await asyncio.to_thread(LOG_SCHEMA.prepare, self._address)
        problem = LogProblem(self._address)
        pool = AsyncPool(self._address.conninfo, _READ_CONNECTIONS)
        writer = LogWriter(self._address, self._server, self._channel, problem, self._timer)
        listener = LogListener(
            self._address, self._channel, self._replicas.followed, self._catch_up, lambda: writer.pid, problem
        )
        self._in_use = _InUse(writer, listener, pool, problem)
        try:
            yield self
        finally:
            if self._background:  # ended tasks are stored as a whole
                await asyncio.wait({*self._background}, timeout=_CLOSE_SECONDS)
            await writer.aclose()
            self._in_use = None
            await stop_tasks(*self._background)
            await listener.aclose()
            await pool.close_idle()

    async def create(self, task: Task, caller: Principal = ANONYMOUS, groups: frozenset[str] = frozenset()) -> None:
        record = TaskRecord(task)

        def settle(row: Row) -> None:
            self._replicas.put(Replica(task.id, row[0], record))

        try:
            await self._parts.writer.submit(statements.create(self._server, task, caller, groups), settle)
        except (NothingWrittenError, UnknownTaskError):
            access = await self.access(task.context_id)
            if access is not None and not access.allows(caller):
                raise ForeignConversationError(task.context_id) from None
            for message in task.history[:1]:
                found = await self.find_message(task.context_id, message.message_id)
                if found is not None and found.task_id != task.id:
                    raise RepeatedMessageError(message.message_id) from None
            raise ValueError(f"the event log already has task {task.id!r}") from None

    async def add_message(self, task_id: str, message: Message, caller: Principal = ANONYMOUS) -> None:
        copy = Message()
        copy.CopyFrom(message)

        def settle(row: Row) -> None:
            place, after, _ = row
            replica = self._replicas.get(task_id)
            if replica is not None and not replica.add_message(copy, place, after):
                self._catch_up(replica)

        write = statements.add_message(self._server, self._channel, task_id, copy, caller)
        try:
            await self._parts.writer.submit(write, settle)
        except NothingWrittenError:
            raise RepeatedMessageError(message.message_id) from None

    async def request(self, task_id: str) -> StoredRequest | None:
        return await self._read(lambda reader: reader.request(task_id))

    async def find_message(self, context_id: str, message_id: str) -> FoundMessage | None:
        return await self._read(lambda reader: reader.find_message(context_id, message_id))

    async def claim(self, task_id: str, progress: int) -> Claim:
        return await self._claim(statements.claim(self._server, task_id, progress))

    async def claim_new(self, task_id: str) -> Claim | None:
        try:
            return await self._claim(statements.claim_new(self._server, task_id))
        except NothingWrittenError:
            return None

    async def _claim(self, write: statements.Write[Claim]) -> Claim:
        claiming = asyncio.ensure_future(self._write(write))
        try:
            while not (await asyncio.wait([claiming], timeout=_LOCK_SECONDS))[0]:
                await self._end_blocking_connections()
        finally:
            claiming.cancel()
        return claiming.result()

    async def check_epoch(self, task_id: str, epoch: int) -> None:
        found = await self._read(lambda reader: reader.epoch(task_id))
        if found is None:
            raise UnknownTaskError(task_id)
        if found != epoch:
            raise SupersededError(task_id)

    async def begin_effect(
        self, task_id: str, call_id: str, epoch: int | None = None, *, result: str | None = None
    ) -> RecordedEffect | None:
        return await self._write(statements.begin_effect(self._server, task_id, call_id, epoch, result))

    async def finish_effect(self, task_id: str, call_id: str, result: str, epoch: int | None = None) -> None:
        await self._write(statements.finish_effect(self._server, task_id, call_id, result, epoch))

    async def effects(self, task_id: str, prefix: str) -> dict[str, RecordedEffect]:
        return await self._read(lambda reader: reader.effects(task_id, prefix))

    async def append(self, task_id: str, events: Sequence[WireEvent], epoch: int | None = None) -> list[Entry]:
        return await self._append(Append(task_id, events, epoch))

    async def read(self, task_id: str, after: int = 0) -> list[Entry]:
        return (await self._known(task_id)).record.entries(after)

    def end_following(self, task_id: str) -> None:
        if (replica := self._replicas.get(task_id)) is not None:
            self._replicas.drop(task_id)
            replica.record.end_following()

    async def follow(self, task_id: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        replica = self._replicas.get(task_id) or await self._known(task_id)
        with self._replicas.following(replica):
            # From here on notifications are received; this query finds what was committed before.
            if not await self._fetch(replica):
                raise UnknownTaskError(task_id)
            async for entries in replica.record.follow(after, replica.record.turns):
                yield entries

    async def state(self, task_id: str) -> TaskState | None:
        return await self._read(lambda reader: reader.state(task_id))

    async def snapshot(self, task_id: str, at: int | None = None) -> Snapshot | None:
        if at is None and self._replicas.get(task_id) is None:
            ended = await self._read(lambda reader: reader.ended(task_id))
            if ended is not None:
                seq, task = ended
                if seq:
                    task.metadata.fields["seq"].number_value = seq
                return Snapshot(seq, task)
        replica = await self._load(task_id)
        return None if replica is None else replica.record.snapshot(at)

    async def task(self, task_id: str, at: int | None = None) -> Task | None:
        snapshot = await self.snapshot(task_id, at)
        return None if snapshot is None else snapshot.task

    async def tasks(self, query: TaskQuery) -> TaskPage:
        page = await self._read(lambda reader: reader.page(query))
        tasks = [row.task or await self.task(row.id) for row in page.rows]
        last = page.rows[-1] if page.rows else None
        return TaskPage(
            tasks=[task for task in tasks if task is not None],
            total=page.total,
            next=(last.changed_ns, last.id) if last is not None and page.has_more else None,
        )

    async def conversations(self, query: ConversationQuery) -> ConversationPage:
        return await self._read(lambda reader: reader.conversations(query))

    async def histories(self, context_id: str) -> list[TaskHistory]:
        return await self._read(lambda reader: reader.histories(context_id))

    async def name(self, context_id: str) -> str | None:
        return await self._read(lambda reader: reader.name(context_id))

    async def rename(self, context_id: str, name: str | None) -> bool:
        values = {"server": self._server, "context_id": storable(context_id), "name": name and storable(name)}
        cursor = await self._run(lambda connection: connection.execute(statements.RENAME, values))
        return cursor.rowcount > 0

    async def access(self, context_id: str) -> ConversationAccess | None:
        return await self._read(lambda reader: reader.access(context_id))

    async def share(self, context_id: str, groups: frozenset[str]) -> bool:
        values = {"server": self._server, "context_id": storable(context_id), "groups": [*map(storable, groups)]}
        cursor = await self._run(lambda connection: connection.execute(statements.SHARE, values))
        return cursor.rowcount > 0

    async def waiting(self, context_id: str) -> str | None:
        return await self._read(lambda reader: reader.waiting(context_id))

    async def overdue(self, before_ns: int) -> list[str]:
        return await self._read(lambda reader: reader.overdue(before_ns))

    async def end_waiting(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        try:
            return await self._append(Append(task_id, events, only_waiting=True))
        except (NothingWrittenError, TaskEndedError):
            return []

    async def unfinished(self) -> list[tuple[str, str]]:
        return await self._read(lambda reader: reader.unfinished())

    async def prune(self, max_tasks: int, max_age_days: float) -> frozenset[str]:
        # A few at a time, so that running tasks do not wait.
        oldest_ns = prune_before_ns(max_age_days)
        conversations: set[str] = set()
        while True:
            pruned = await self._run(
                lambda connection: pruning.prune_some(connection, self._server, max_tasks, oldest_ns)
            )
            for task_id in pruned.task_ids:
                self._replicas.drop(task_id)
            conversations |= pruned.conversations
            if not pruned.task_ids:
                return frozenset(conversations)

    async def delete_conversation(self, context_id: str) -> int:
        task_ids = await self._run(lambda connection: pruning.delete_ended(connection, self._server, context_id))
        for task_id in task_ids:
            self._replicas.drop(task_id)
        return len(task_ids)

    @property
    def _parts(self) -> _InUse:
        if self._in_use is None:
            raise LogClosedError
        return self._in_use

    async def _write(self, write: statements.Write[T]) -> T:
        result: T = await self._parts.writer.submit(write, write.result)
        return result

    async def _append(self, append: Append) -> list[Entry]:
        task_id, events = append.task_id, append.events
        if continues_after_end(events):
            raise TaskEndedError(task_id)
        ends = bool(events) and ends_task(events[-1])

        def settle(row: Row) -> list[Entry]:
            before, messages = row
            entries = [Entry(seq, event) for seq, event in enumerate(events, before + 1)]
            for entry in entries:
                stamp(entry.event, entry.seq)
            replica = self._replicas.get(task_id)
            if replica is not None:
                if not replica.append(entries, messages):
                    self._catch_up(replica)
                self._replicas.put(replica)
            for observer in self._observers:
                observer(task_id, entries)
            if ends:
                self._start(self._store_folded(task_id))
            return entries

        # A run that breaks off because the server is away ends when it is back.
        result: list[Entry] = await self._parts.writer.submit(append, settle, until_stored=breaks_off(events))
        return result

    async def _end_blocking_connections(self) -> None:
        """End the connections with locks that the writer waits for. A process that was stopped in a transaction about
        the run has such locks; one that is alive connects again and repeats its writes."""
        pid = self._parts.writer.pid
        if pid is not None:
            cursor = await self._run(lambda connection: connection.execute(_END_BLOCKING, (pid,)))
            for (blocking,) in await cursor.fetchall():
                logger.warning("%s: connection %d was ended, because it blocked a claim", self._address, blocking)

    async def _store_folded(self, task_id: str) -> None:
        """Store an ended task as a whole, so that reading it does not need its events."""
        replica = self._replicas.get(task_id)
        if replica is None or not replica.record.ended:
            replica = await self._load(task_id)
        if replica is not None:
            await self._write(statements.store_folded(task_id, replica.number, replica.record.fold.task()))

    async def _known(self, task_id: str) -> Replica:
        replica = await self._load(task_id)
        if replica is None:
            raise UnknownTaskError(task_id)
        return replica

    async def _load(self, task_id: str) -> Replica | None:
        """The task as it is in the database now."""
        replica = self._replicas.get(task_id)
        if replica is not None:
            if await self._fetch(replica):
                return replica
            self._replicas.drop(task_id)
            return None
        loading = self._loading.get(task_id)
        if loading is None:
            loading = asyncio.ensure_future(self._read_replica(task_id))
            self._loading[task_id] = loading
        # Shielded: several callers may wait for one load, and the first may be cancelled.
        return await asyncio.shield(loading)

    async def _read_replica(self, task_id: str) -> Replica | None:
        try:
            found = await self._read(lambda reader: reader.record(task_id))
            if found is None:
                return None
            replica = self._replicas.get(task_id) or Replica(task_id, *found)
            self._replicas.put(replica)
            return replica
        finally:
            del self._loading[task_id]

    async def _fetch(self, replica: Replica) -> bool:
        """Read what the copy lacks. False if the task was deleted."""
        news = await self._read(lambda reader: reader.news(replica.number, *replica.place))
        if news:
            replica.apply(news)
        return news is not None

    def _catch_up(self, replica: Replica) -> None:
        """Read what the copy lacks, in the background."""
        replica.is_behind = True
        if not replica.is_fetching:
            replica.is_fetching = True
            self._start(self._fetch_news(replica))

    async def _fetch_news(self, replica: Replica) -> None:
        try:
            while replica.is_behind:
                replica.is_behind = False
                await self._fetch(replica)
        finally:
            replica.is_fetching = False

    def _start(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            try:
                await work
            except (LogReadError, LogClosedError):
                pass  # the listener compares followed tasks with the database when it is back
            except Exception:
                logger.exception("a task could not be read or completed")

        task = asyncio.create_task(run())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _read(self, query: Callable[[LogReader], Awaitable[T]]) -> T:
        return await self._run(lambda connection: query(LogReader(connection, self._server)))

    async def _run(self, query: Callable[[Connection], Awaitable[T]]) -> T:
        """Run a query. If the server is away, wait a short time for it."""
        parts = self._parts
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _READ_SECONDS
        while True:
            begun = loop.time()
            try:
                async with asyncio.timeout(STATEMENT_SECONDS + 5), parts.pool.connection() as connection:
                    return await query(connection)
            except (psycopg.Error, OSError, TimeoutError) as error:
                await parts.pool.close_idle()
                # A connection that was idle may have been broken for long: try a new one at once.
                is_over = await parts.problem.is_over(max(0.0, deadline - loop.time()))
                if not is_over or loop.time() >= deadline or not isinstance(error, _BROKEN):
                    logger.warning("%s: tasks cannot be read: %s", self._address, error)
                    raise LogReadError from None
            finally:
                self._timer.observe("event_log", "postgres", "read", loop.time() - begun)
            await asyncio.sleep(_RETRY_SECONDS)


@dataclass(frozen=True, slots=True)
class _InUse:
    writer: LogWriter
    listener: LogListener
    pool: AsyncPool
    problem: LogProblem
