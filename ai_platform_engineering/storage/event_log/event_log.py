"""The interface of the event log.

The log numbers events (`seq`); nothing else does. Every subscription, every `tasks/get` and every resubscription is
served from it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.identity.access import ConversationAccess
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.storage.event_log.conversations import (
    ConversationPage,
    ConversationQuery,
)
from ai_platform_engineering.storage.event_log.task_history import TaskHistory
from ai_platform_engineering.storage.event_log.task_record import (
    Entry,
    Snapshot,
    StoredRequest,
)
from ai_platform_engineering.utils.a2a_common.request_context import RecordedEffect
from ai_platform_engineering.utils.a2a_common.wire import WireEvent

__all__ = [
    "Claim",
    "Entry",
    "EventLog",
    "ForeignConversationError",
    "FoundMessage",
    "Observer",
    "RecordedEffect",
    "RepeatedMessageError",
    "Snapshot",
    "StoredRequest",
    "SupersededError",
    "TaskEndedError",
    "TaskPage",
    "TaskQuery",
    "UnknownTaskError",
]


class UnknownTaskError(LookupError):
    """The log does not have the task, or has pruned it."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"the event log has no task {task_id!r}")


class TaskEndedError(RuntimeError):
    """An event was appended to a task that has ended."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"task {task_id!r} has ended; nothing may follow the event that ends it")


class ForeignConversationError(LookupError):
    """The conversation belongs to another principal."""

    def __init__(self, context_id: str) -> None:
        super().__init__(f"the conversation {context_id!r} belongs to another principal")


class RepeatedMessageError(RuntimeError):
    """The conversation has a message with this id."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"the conversation already has a message {message_id!r}")


class SupersededError(RuntimeError):
    """Another process has claimed the run since, so this process must write nothing more about it."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"the run of task {task_id!r} was claimed by another process")


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """Where a message is stored: its task, and the `seq` of the last event before it."""

    task_id: str
    after: int


@dataclass(frozen=True, slots=True)
class Claim:
    """The right of one process to write about the run of a task. It ends with the next claim, which has a higher epoch.

    `attempts` counts the claims since the run last made progress.
    """

    epoch: int
    attempts: int


@dataclass(frozen=True, slots=True)
class TaskQuery:
    """A filter for tasks. Newest change first, at most `limit`, beginning behind the position `after`.

    With a `viewer`, only the tasks of conversations that this principal may see.
    """

    context_id: str | None = None
    state: TaskState | None = None
    changed_since_ns: int | None = None
    after: tuple[int, str] | None = None
    limit: int = 50
    viewer: Principal | None = None


@dataclass(frozen=True, slots=True)
class TaskPage:
    tasks: list[Task]
    total: int
    next: tuple[int, str] | None


Observer = Callable[[str, Sequence[Entry]], None]
"""Gets the id of a task and the entries that were appended to it, after they were committed. Must not block."""


class EventLog(Protocol):
    durable: ClassVar[bool]
    """Whether tasks survive the process."""

    @property
    def problem(self) -> str | None:
        """Why tasks cannot be stored now, without addresses; None if they can."""

    def subscribe(self, observer: Observer) -> None:
        """Call `observer` for every append of this process, in order per task."""

    def opened(self) -> AbstractAsyncContextManager[Self]:
        """The log is usable inside this context."""

    async def create(self, task: Task, caller: Principal = ANONYMOUS, groups: frozenset[str] = frozenset()) -> None:
        """Add a task with the state `submitted` and its first message in its history.

        The first task of a conversation makes `caller` its owner and shares it with `groups`. Raises
        `ForeignConversationError` if the conversation is one that the caller may not use, and `RepeatedMessageError` if
        it has a message with this id.
        """

    async def access(self, context_id: str) -> ConversationAccess | None:
        """Who may use a conversation; None if there is no such conversation."""

    async def share(self, context_id: str, groups: frozenset[str]) -> bool:
        """Share a conversation with exactly these groups. False if it has no owner."""

    async def add_message(self, task_id: str, message: Message, caller: Principal = ANONYMOUS) -> None:
        """Add a later message to a task. Raises `RepeatedMessageError` as `create` does."""

    async def request(self, task_id: str) -> StoredRequest | None:
        """The last message to a task."""

    async def find_message(self, context_id: str, message_id: str) -> FoundMessage | None:
        """The message with this id in a conversation, if its client has sent it before."""

    async def claim(self, task_id: str, progress: int) -> Claim:
        """Claim the run of a task. From now on, writes with an earlier epoch raise `SupersededError`.

        `progress` is the `seq` of the last event that is not text.
        """

    async def claim_new(self, task_id: str) -> Claim | None:
        """Claim the first run of a task. None if the task has an event or a second message, or if a task of its
        conversation waits for a person."""

    async def check_epoch(self, task_id: str, epoch: int) -> None:
        """Raise `SupersededError` if the run was claimed since the claim with this epoch."""

    async def append(self, task_id: str, events: Sequence[WireEvent], epoch: int | None = None) -> list[Entry]:
        """Number and store the events, then show them to followers. A run that was claimed passes its `epoch`."""

    async def begin_effect(
        self, task_id: str, call_id: str, epoch: int | None = None, *, result: str | None = None
    ) -> RecordedEffect | None:
        """Record that a call which changes something begins, or with `result` a fact that never changes. If it is
        recorded already, return that and change nothing."""

    async def finish_effect(self, task_id: str, call_id: str, result: str, epoch: int | None = None) -> None:
        """Record the result of such a call."""

    async def effects(self, task_id: str, prefix: str) -> dict[str, RecordedEffect]:
        """The recorded calls and facts of a task whose ids begin with `prefix`."""

    async def unfinished(self) -> list[tuple[str, str]]:
        """Tasks with a run, or a message without a run, in order of arrival: id and conversation of each."""

    async def read(self, task_id: str, after: int = 0) -> list[Entry]:
        """The stored entries with a `seq` greater than `after`."""

    def end_following(self, task_id: str) -> None:
        """End the iterations of `follow` over a task in this process, after the stored entries."""

    def follow(self, task_id: str, after: int = 0) -> AsyncIterator[Sequence[Entry]]:
        """Yield batches of entries after `after`, stored and new, until the task ends or waits for an answer.

        A question that was answered before the call does not end the iteration. Raises `UnknownTaskError` at the
        latest when the first batch is requested.
        """

    async def state(self, task_id: str) -> TaskState | None:
        """The state of a task, cheaper than `task`."""

    async def snapshot(self, task_id: str, at: int | None = None) -> Snapshot | None:
        """The task and the `seq` of its last event, now or as of event `at`."""

    async def task(self, task_id: str, at: int | None = None) -> Task | None:
        """The task of `snapshot`."""

    async def tasks(self, query: TaskQuery) -> TaskPage:
        """A page of tasks."""

    async def conversations(self, query: ConversationQuery) -> ConversationPage:
        """A page of conversations."""

    async def histories(self, context_id: str) -> list[TaskHistory]:
        """The tasks of a conversation with all events, the oldest first. Each is as of one moment."""

    async def name(self, context_id: str) -> str | None:
        """The name that a person gave a conversation. It is deleted with the conversation."""

    async def rename(self, context_id: str, name: str | None) -> bool:
        """Set or remove the name of a conversation. False if there is no such conversation."""

    async def waiting(self, context_id: str) -> str | None:
        """The task of a conversation that waits for a person; the latest, if there are several."""

    async def overdue(self, before_ns: int) -> list[str]:
        """Tasks that have waited for a person since before that time, the oldest first."""

    async def end_waiting(self, task_id: str, events: Sequence[WireEvent]) -> list[Entry]:
        """Append to a task that waits for a person. Appends nothing if it was answered or has ended meanwhile."""

    async def prune(self, max_tasks: int, max_age_days: float) -> frozenset[str]:
        """Delete ended tasks beyond the limits (age 0: no limit). Returns conversations without any task left."""

    async def delete_conversation(self, context_id: str) -> int:
        """Delete the ended tasks of a conversation and its name. Returns the number of tasks."""


def prune_before_ns(max_age_days: float) -> int:
    """The time before which ended tasks are too old; 0 for no limit."""
    return time.time_ns() - int(max_age_days * 86_400e9) if max_age_days else 0
