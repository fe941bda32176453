"""The event log: what happened in each task, in order, numbered here and nowhere else.

Every subscription, every `tasks/get` and every repetition after a lost connection is served from it. Encoding for the
wire and the HTTP surface live elsewhere.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, Self

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.utils.a2a_common.log.task_fold import TaskFold
from ai_platform_engineering.utils.a2a_common.log.task_record import Entry, Snapshot, TaskRecord, goes_on_after_its_end
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

    def follow(self, task_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """What is stored after number `after` and what comes, until the task ends or waits for an answer.

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


class MemoryEventLog:
    """The log of one process. Ended tasks beyond `max_tasks` are dropped, oldest end first; others never."""

    def __init__(self, max_tasks: int = 1000) -> None:
        self._max_tasks = max_tasks
        self._records: dict[str, TaskRecord] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Self]:
        yield self

    async def create(self, task: Task) -> None:
        if task.id in self._records:
            raise ValueError(f"the event log already has task {task.id!r}")
        self._records[task.id] = TaskRecord(task)
        self._note_end(task.id)

    async def add_message(self, task_id: str, message: Message) -> None:
        self._open(task_id).add_message(message)

    async def append(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        record = self._open(task_id)
        if goes_on_after_its_end(events):
            raise TaskEndedError(task_id)
        entries = record.append(events)
        self._note_end(task_id)
        return entries

    async def read(self, task_id: str, after: int = 0) -> list[Entry]:
        return self._record(task_id).entries(after)

    def follow(self, task_id: str, after: int = 0) -> AsyncIterator[Entry]:
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

    def _note_end(self, task_id: str) -> None:
        if self._records[task_id].ended:
            self._ended[task_id] = None
            while len(self._ended) > self._max_tasks:
                del self._records[self._ended.popitem(last=False)[0]]


def _matches(fold: TaskFold, query: TaskQuery) -> bool:
    return (
        (query.context_id is None or fold.context_id == query.context_id)
        and (query.state is None or fold.state == query.state)
        and (query.changed_since_ns is None or fold.changed_ns >= query.changed_since_ns)
    )
