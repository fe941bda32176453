"""The event log in memory."""

from __future__ import annotations

import time
from array import array
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.identity.access import UNOWNED, ConversationAccess, sees_everything
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.storage.event_log.conversations import (
    ConversationPage,
    ConversationQuery,
    ConversationRow,
    PageBuilder,
    TaskTexts,
)
from ai_platform_engineering.storage.event_log.event_log import (
    Claim,
    ForeignConversationError,
    FoundMessage,
    Observer,
    RepeatedMessageError,
    SupersededError,
    TaskEndedError,
    TaskPage,
    TaskQuery,
    UnknownTaskError,
    prune_before_ns,
)
from ai_platform_engineering.storage.event_log.task_fold import TaskFold
from ai_platform_engineering.storage.event_log.task_history import SentMessage, TaskHistory
from ai_platform_engineering.storage.event_log.task_record import (
    Entry,
    Snapshot,
    StoredRequest,
    TaskRecord,
    continues_after_end,
)
from ai_platform_engineering.utils.a2a_common.protocol import WAITING_STATES
from ai_platform_engineering.utils.a2a_common.request_context import RecordedEffect
from ai_platform_engineering.utils.a2a_common.wire import WireEvent


@dataclass(slots=True)
class _MemoryRun:
    """What the log stores about the run of a task beside its events."""

    callers: list[Principal]
    """The callers of the messages, in their order."""
    created_ns: int = field(default_factory=time.time_ns)
    times: array[int] = field(default_factory=lambda: array("q"))
    """The time of each event."""
    epoch: int = 0
    attempts: int = 0
    progress: int = -1
    effects: dict[str, RecordedEffect] = field(default_factory=dict)


class MemoryEventLog:
    """A log in memory. Only ended tasks beyond `max_tasks` are dropped, the oldest first."""

    durable: ClassVar = False
    problem = None

    def __init__(self, max_tasks: int = 1000) -> None:
        self._max_tasks = max_tasks
        self._records: dict[str, TaskRecord] = {}
        self._runs: dict[str, _MemoryRun] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        # By conversation, the latest question last.
        self._waiting: dict[str, dict[str, None]] = {}
        self._dropped_from: set[str] = set()
        self._names: dict[str, str] = {}
        self._access: dict[str, ConversationAccess] = {}
        self._observers: list[Observer] = []

    def subscribe(self, observer: Observer) -> None:
        self._observers.append(observer)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        yield self

    async def create(self, task: Task, caller: Principal = ANONYMOUS, groups: frozenset[str] = frozenset()) -> None:
        if task.id in self._records:
            raise ValueError(f"the event log already has task {task.id!r}")
        if not self._may_use(caller, task.context_id):
            raise ForeignConversationError(task.context_id)
        for message in task.history[:1]:
            await self._check_new(task.context_id, message)
        if caller.owner and not self._has_tasks(task.context_id):
            self._access[task.context_id] = ConversationAccess(caller.owner, caller.via, groups)
        self._records[task.id] = TaskRecord(task)
        self._runs[task.id] = _MemoryRun([caller])
        self._update_indexes(task.id)

    async def add_message(self, task_id: str, message: Message, caller: Principal = ANONYMOUS) -> None:
        record = self._open(task_id)
        await self._check_new(record.fold.context_id, message)
        record.add_message(message)
        self._runs[task_id].callers.append(caller)

    async def request(self, task_id: str) -> StoredRequest | None:
        record = self._records.get(task_id)
        return None if record is None else record.request(self._runs[task_id].callers[-1])

    async def find_message(self, context_id: str, message_id: str) -> FoundMessage | None:
        for task_id, record in self._records.items():
            if record.fold.context_id == context_id and (after := record.message_place(message_id)) is not None:
                return FoundMessage(task_id, after)
        return None

    async def claim(self, task_id: str, progress: int) -> Claim:
        self._open(task_id)
        run = self._runs[task_id]
        run.epoch += 1
        run.attempts = 1 if progress > run.progress else run.attempts + 1
        run.progress = progress
        return Claim(run.epoch, run.attempts)

    async def claim_new(self, task_id: str) -> Claim | None:
        record = self._open(task_id)
        is_new = not record.last and record.turns == 1 and not self._waiting.get(record.fold.context_id)
        return await self.claim(task_id, 0) if is_new else None

    async def check_epoch(self, task_id: str, epoch: int) -> None:
        self._claimed(task_id, epoch)

    async def begin_effect(
        self, task_id: str, call_id: str, epoch: int | None = None, *, result: str | None = None
    ) -> RecordedEffect | None:
        effects = self._claimed(task_id, epoch).effects
        recorded = effects.get(call_id)
        effects.setdefault(call_id, RecordedEffect(result))
        return recorded

    async def finish_effect(self, task_id: str, call_id: str, result: str, epoch: int | None = None) -> None:
        self._claimed(task_id, epoch).effects[call_id] = RecordedEffect(result)

    async def effects(self, task_id: str, prefix: str) -> dict[str, RecordedEffect]:
        run = self._runs.get(task_id)
        return {key: effect for key, effect in run.effects.items() if key.startswith(prefix)} if run else {}

    async def unfinished(self) -> list[tuple[str, str]]:
        return [(task_id, record.fold.context_id) for task_id, record in self._records.items() if not record.resting]

    async def append(self, task_id: str, events: Sequence[WireEvent], epoch: int | None = None) -> list[Entry]:
        record = self._open(task_id)
        run = self._claimed(task_id, epoch)
        if continues_after_end(events):
            raise TaskEndedError(task_id)
        run.times.extend([time.time_ns()] * len(events))
        entries = record.append(events)
        self._update_indexes(task_id)
        for observer in self._observers:
            observer(task_id, entries)
        return entries

    async def read(self, task_id: str, after: int = 0) -> list[Entry]:
        return self._record(task_id).entries(after)

    def end_following(self, task_id: str) -> None:
        self._record(task_id).end_following()

    def follow(self, task_id: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        record = self._record(task_id)
        return record.follow(after, record.turns)

    async def state(self, task_id: str) -> TaskState | None:
        record = self._records.get(task_id)
        return None if record is None else record.fold.state

    async def snapshot(self, task_id: str, at: int | None = None) -> Snapshot | None:
        record = self._records.get(task_id)
        return None if record is None else record.snapshot(at)

    async def task(self, task_id: str, at: int | None = None) -> Task | None:
        snapshot = await self.snapshot(task_id, at)
        return None if snapshot is None else snapshot.task

    async def tasks(self, query: TaskQuery) -> TaskPage:
        places = sorted(
            (
                (record.fold.changed_ns, task_id)
                for task_id, record in self._records.items()
                if _matches(record.fold, query) and self._may_use(query.viewer, record.fold.context_id)
            ),
            reverse=True,
        )
        total = len(places)
        if query.after is not None:
            places = [place for place in places if place < query.after]
        page = places[: query.limit]
        return TaskPage(
            tasks=[self._records[task_id].snapshot().task for _, task_id in page],
            total=total,
            next=page[-1] if len(page) < len(places) else None,
        )

    async def conversations(self, query: ConversationQuery) -> ConversationPage:
        by_id: dict[str, list[TaskRecord]] = {}
        for record in self._records.values():
            if self._may_use(query.viewer, record.fold.context_id):
                by_id.setdefault(record.fold.context_id, []).append(record)
        rows = [self._row(context_id, records) for context_id, records in by_id.items()]
        builder = PageBuilder(query)
        for row in sorted(rows, key=lambda row: row.position, reverse=True):
            if query.after is None or row.position < query.after:
                tasks = (TaskTexts(record.submitted, record.last_artifact) for record in by_id[row.id])
                builder.add(row, (text for task in tasks for text in task))
        return builder.page()

    async def histories(self, context_id: str) -> list[TaskHistory]:
        records = [record for record in self._records.values() if record.fold.context_id == context_id]
        return [self._history(record) for record in records]

    async def name(self, context_id: str) -> str | None:
        return self._names.get(context_id)

    async def rename(self, context_id: str, name: str | None) -> bool:
        if not self._has_tasks(context_id):
            return False
        self._names.pop(context_id, None)
        if name is not None:
            self._names[context_id] = name
        return True

    async def access(self, context_id: str) -> ConversationAccess | None:
        if not self._has_tasks(context_id):
            return None
        return self._access.get(context_id) or UNOWNED

    async def share(self, context_id: str, groups: frozenset[str]) -> bool:
        access = self._access.get(context_id)
        if access is not None:
            self._access[context_id] = replace(access, groups=groups)
        return access is not None

    async def waiting(self, context_id: str) -> str | None:
        return next(reversed(self._waiting.get(context_id, {})), None)

    async def overdue(self, before_ns: int) -> list[str]:
        waiting = [task_id for task_ids in self._waiting.values() for task_id in task_ids]
        changes = sorted((self._records[task_id].fold.changed_ns, task_id) for task_id in waiting)
        return [task_id for changed_ns, task_id in changes if changed_ns < before_ns]

    async def end_waiting(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        return await self.append(task_id, events) if self._record(task_id).waits else []

    async def prune(self, max_tasks: int, max_age_days: float) -> frozenset[str]:
        oldest_ns = prune_before_ns(max_age_days)
        while self._ended and (
            len(self._ended) > max_tasks or self._records[next(iter(self._ended))].fold.changed_ns < oldest_ns
        ):
            self._drop_oldest()
        left = {record.fold.context_id for record in self._records.values()}
        dropped, self._dropped_from = self._dropped_from, set()
        return frozenset(dropped - left)

    async def delete_conversation(self, context_id: str) -> int:
        ended = [task_id for task_id in self._ended if self._records[task_id].fold.context_id == context_id]
        for task_id in ended:
            del self._ended[task_id], self._records[task_id], self._runs[task_id]
        self._names.pop(context_id, None)
        if not self._has_tasks(context_id):
            self._access.pop(context_id, None)
        return len(ended)

    async def _check_new(self, context_id: str, message: Message) -> None:
        if message.message_id and await self.find_message(context_id, message.message_id) is not None:
            raise RepeatedMessageError(message.message_id)

    def _row(self, context_id: str, records: Sequence[TaskRecord]) -> ConversationRow:
        last = max(records, key=lambda record: (not record.ended, record.fold.changed_ns))
        return ConversationRow(
            context_id,
            len(records),
            last.fold.state,
            min(self._runs[record.submitted.id].created_ns for record in records),
            max(record.fold.changed_ns for record in records),
            records[0].submitted,
            self._names.get(context_id),
            self._access.get(context_id) or UNOWNED,
        )

    def _may_use(self, principal: Principal | None, context_id: str) -> bool:
        if principal is None or sees_everything(principal):
            return True
        access = self._access.get(context_id)
        return not self._has_tasks(context_id) if access is None else access.allows(principal)

    def _has_tasks(self, context_id: str) -> bool:
        return any(record.fold.context_id == context_id for record in self._records.values())

    def _history(self, record: TaskRecord) -> TaskHistory:
        run = self._runs[record.submitted.id]
        sent = zip(record.messages, run.callers[1:], strict=True)
        return TaskHistory(
            record.submitted,
            record.fold.state,
            run.created_ns,
            record.fold.changed_ns,
            record.packed(),
            list(run.times),
            [SentMessage(after, message, caller) for (after, message), caller in sent],
        )

    def _record(self, task_id: str) -> TaskRecord:
        try:
            return self._records[task_id]
        except KeyError:
            raise UnknownTaskError(task_id) from None

    def _open(self, task_id: str) -> TaskRecord:
        record = self._record(task_id)
        if record.ended:
            raise TaskEndedError(task_id)
        return record

    def _claimed(self, task_id: str, epoch: int | None) -> _MemoryRun:
        self._record(task_id)
        run = self._runs[task_id]
        if epoch not in (None, run.epoch):
            raise SupersededError(task_id)
        return run

    def _update_indexes(self, task_id: str) -> None:
        record = self._records[task_id]
        context_id = record.fold.context_id
        if record.fold.state in WAITING_STATES:
            waiting = self._waiting.setdefault(context_id, {})
            waiting.pop(task_id, None)
            waiting[task_id] = None
        elif (others := self._waiting.get(context_id)) is not None:
            others.pop(task_id, None)
            if not others:
                del self._waiting[context_id]
        if record.ended:
            self._ended[task_id] = None
            while len(self._ended) > self._max_tasks:
                self._drop_oldest()

    def _drop_oldest(self) -> None:
        task_id, _ = self._ended.popitem(last=False)
        del self._runs[task_id]
        context_id = self._records.pop(task_id).fold.context_id
        self._dropped_from.add(context_id)
        if not self._has_tasks(context_id):
            self._names.pop(context_id, None)
            self._access.pop(context_id, None)


def _matches(fold: TaskFold, query: TaskQuery) -> bool:
    return (
        (query.context_id is None or fold.context_id == query.context_id)
        and (query.state is None or fold.state == query.state)
        and (query.changed_since_ns is None or fold.changed_ns >= query.changed_since_ns)
    )
