"""A stored task with the times of its events and the callers of its messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.storage.event_log.task_record import Entry, PackedEvent


@dataclass(frozen=True, slots=True)
class SentMessage:
    """A message after the first, its caller, and the `seq` of the last event before it."""

    after: int
    message: Message
    caller: Principal


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """All parts are as of the same moment. Times are in nanoseconds since the epoch."""

    submitted: Task
    state: TaskState
    created_ns: int
    changed_ns: int
    events: Sequence[PackedEvent]
    times: Sequence[int]
    """The time of each event."""
    messages: Sequence[SentMessage]

    @classmethod
    def of_rows(
        cls,
        task: tuple[Any, ...],
        events: Sequence[tuple[bool, bytes, int]],
        messages: Iterable[tuple[int, bytes, str | None]],
    ) -> Self:
        """The history in rows of the tables. `task`: submitted, state, created_ns, changed_ns. `events`: is_status,
        body, at_ns. `messages`: after, body, caller."""
        submitted, state, created_ns, changed_ns = task
        return cls(
            Task.FromString(submitted),
            state,
            created_ns,
            changed_ns,
            [PackedEvent(bool(is_status), body) for is_status, body, _ in events],
            [at_ns for _, _, at_ns in events],
            [
                SentMessage(after, Message.FromString(body), Principal.from_json(caller))
                for after, body, caller in messages
            ],
        )

    def entries(self) -> list[Entry]:
        return [Entry(seq, event.unpacked(seq)) for seq, event in enumerate(self.events, 1)]
