"""The event log: what happened in each task, in order, numbered here and nowhere else.

Every subscription, every `tasks/get` and every repetition after a lost connection is served from it. Encoding for the
wire and the HTTP surface live elsewhere.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, Self

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.storage.event_log.task_fold import TaskFold
from ai_platform_engineering.storage.event_log.task_record import Entry, Snapshot, TaskRecord, goes_on_after_its_end
from ai_platform_engineering.utils.a2a_common.protocol import PARKED_STATES
from ai_platform_engineering.utils.a2a_common.wire import WireEvent

__all__ = [
    "Entry",
    "EventLog",
    "MemoryEventLog",
    "Snapshot",
    "TaskEndedError",
    "TaskPage",
    "TaskQuery",
    "UnknownTaskError",
]


class UnknownTaskError(LookupError):
    """The log has no such task: it never had it, or has dropped it since."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"the event log has no task {task_id!r}")


class TaskEndedError(RuntimeError):
    """Something was written to a task after its end."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"task {task_id!r} has ended; nothing may follow the event that ends it")


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """Which tasks to list: newest change first, from behind the place `after` on, at most `limit`."""

    context_id: str | None = None
    state: TaskState | None = None
    changed_since_ns: int | None = None
    after: tuple[int, str] | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class TaskPage:
    tasks: list[Task]
    total: int
    next: tuple[int, str] | None


class EventLog(Protocol):
    def opened(self) -> AbstractAsyncContextManager[Self]:
        """The log is used while this is entered."""

    async def create(self, task: Task) -> None:
        """Begin a task: submitted, with its first message in its history."""

    async def add_message(self, task_id: str, message: Message) -> None:
        """A later message to the same task."""

    async def append(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        """Number the events, keep them, then let followers see them."""

    async def read(self, task_id: str, after: int = 0) -> list[Entry]:
        """What is stored after number `after`."""

    def follow(self, task_id: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        """What is stored after number `after` and what comes, until the task ends or waits for an answer: each time
        all that there is.

        A pause that had been answered when following began is history and is passed over. A task that the log does
        not have is an error, at the latest when the first entry is asked for.
        """

    async def state(self, task_id: str) -> TaskState | None:
        """The task's state, without the cost of the task."""

    async def snapshot(self, task_id: str, at: int | None = None) -> Snapshot | None:
        """The task and the number of the last event in it, now or as of event `at`."""

    async def task(self, task_id: str, at: int | None = None) -> Task | None:
        """The task alone."""

    async def tasks(self, query: TaskQuery) -> TaskPage:
        """A page of tasks."""

    async def waiting(self, context_id: str) -> str | None:
        """The task of a conversation that waits for a person; the one that asked last, if there are several."""

    async def overdue(self, before_ns: int) -> list[str]:
        """Tasks that wait for a person and whose status last changed before that time, the oldest first."""

    async def end_waiting(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        """Append to a task that waits for a person; nothing, if somebody has answered or it has ended meanwhile."""

    async def prune(self, max_tasks: int, max_age_days: float) -> frozenset[str]:
        """Drop ended tasks that are too old (0: none is) or too many; the conversations of which nothing is left."""


class MemoryEventLog:
    """The log of one process. Ended tasks beyond `max_tasks` are dropped, oldest end first; others never."""

    def __init__(self, max_tasks: int = 1000) -> None:
        self._max_tasks = max_tasks
        self._records: dict[str, TaskRecord] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        # By conversation, those that asked last at the end.
        self._waiting: dict[str, dict[str, None]] = {}
        self._dropped_from: set[str] = set()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        yield self

    async def create(self, task: Task) -> None:
        if task.id in self._records:
            raise ValueError(f"the event log already has task {task.id!r}")
        self._records[task.id] = TaskRecord(task)
        self._note_state(task.id)

    async def add_message(self, task_id: str, message: Message) -> None:
        self._open(task_id).add_message(message)

    async def append(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        record = self._open(task_id)
        if goes_on_after_its_end(events):
            raise TaskEndedError(task_id)
        entries = record.append(events)
        self._note_state(task_id)
        return entries

    async def read(self, task_id: str, after: int = 0) -> list[Entry]:
        return self._record(task_id).entries(after)

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
                if _matches(record.fold, query)
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

    async def waiting(self, context_id: str) -> str | None:
        return next(reversed(self._waiting.get(context_id, {})), None)

    async def overdue(self, before_ns: int) -> list[str]:
        waiting = [task_id for task_ids in self._waiting.values() for task_id in task_ids]
        changes = sorted((self._records[task_id].fold.changed_ns, task_id) for task_id in waiting)
        return [task_id for changed_ns, task_id in changes if changed_ns < before_ns]

    async def end_waiting(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        return await self.append(task_id, events) if self._record(task_id).waits else []

    async def prune(self, max_tasks: int, max_age_days: float) -> frozenset[str]:
        oldest_ns = oldest_kept_ns(max_age_days)
        while self._ended and (
            len(self._ended) > max_tasks or self._records[next(iter(self._ended))].fold.changed_ns < oldest_ns
        ):
            self._drop_oldest()
        left = {record.fold.context_id for record in self._records.values()}
        dropped, self._dropped_from = self._dropped_from, set()
        return frozenset(dropped - left)

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

    def _note_state(self, task_id: str) -> None:
        record = self._records[task_id]
        context_id = record.fold.context_id
        if record.fold.state in PARKED_STATES:
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
        record = self._records.pop(self._ended.popitem(last=False)[0])
        self._dropped_from.add(record.fold.context_id)


def oldest_kept_ns(max_age_days: float) -> int:
    """What ended before is too old; 0, which nothing is before, for no limit."""
    return time.time_ns() - int(max_age_days * 86_400e9) if max_age_days else 0


def _matches(fold: TaskFold, query: TaskQuery) -> bool:
    return (
        (query.context_id is None or fold.context_id == query.context_id)
        and (query.state is None or fold.state == query.state)
        and (query.changed_since_ns is None or fold.changed_ns >= query.changed_since_ns)
    )
