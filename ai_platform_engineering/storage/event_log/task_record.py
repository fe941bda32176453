"""One task in memory: its messages, its events and its followers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from a2a.types.a2a_pb2 import Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.storage.event_log.task_fold import TaskFold, ends_task, suspends_task
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES, WAITING_STATES
from ai_platform_engineering.utils.a2a_common.wire import WireEvent, stamp


@dataclass(frozen=True, slots=True)
class Entry:
    """One event and its number. All readers share the event, so it must not be changed."""

    seq: int
    event: WireEvent


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The task as of event `seq` (0: before the first)."""

    seq: int
    task: Task


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """A message to a task, the caller who sent it, and the `seq` of the last event before it."""

    message: Message
    caller: Principal
    after: int


@dataclass(frozen=True, slots=True)
class PackedEvent:
    """A serialized event. It takes a fifth of the memory, for tasks that are rarely read."""

    is_status: bool
    body: bytes

    @classmethod
    def of(cls, event: WireEvent) -> PackedEvent:
        return cls(isinstance(event, TaskStatusUpdateEvent), event.SerializeToString())

    def unpacked(self, seq: int) -> WireEvent:
        """The event with its number, which the body may lack."""
        kind = TaskStatusUpdateEvent if self.is_status else TaskArtifactUpdateEvent
        event = kind.FromString(self.body)
        stamp(event, seq)
        return event


class TaskRecord:
    """Events are objects while the task runs, and are serialized when it ends or waits."""

    __slots__ = (
        "__weakref__",
        "_entries",
        "_is_followed",
        "_messages",
        "_packed",
        "_pauses",
        "changed",
        "fold",
        "submitted",
    )

    def __init__(self, task: Task) -> None:
        self.submitted = Task()
        self.submitted.CopyFrom(task)
        self.fold = TaskFold(task)
        self.changed = asyncio.Event()
        self._packed: list[PackedEvent] = []
        self._entries: list[Entry] = []
        self._messages: list[tuple[int, Message]] = []
        self._pauses: list[int] = []
        self._is_followed = True

    @classmethod
    def stored(
        cls,
        submitted: Task,
        events: Sequence[PackedEvent],
        messages: Iterable[tuple[int, Message]],
        folded: Task | None = None,
    ) -> TaskRecord:
        """A task from storage; `folded` is the result of one that has ended."""
        record = cls(submitted)
        if folded is not None:
            record.fold = TaskFold(folded)
            record._messages = list(messages)
            record._packed = list(events)
            pauses = (
                seq for seq, event in enumerate(events, 1) if event.is_status and suspends_task(event.unpacked(seq))
            )
            record._pauses = list(pauses)
            return record
        pending = deque(messages)
        for seq, event in enumerate(events, 1):
            while pending and pending[0][0] < seq:
                record.add_message(pending.popleft()[1])
            record.append([event.unpacked(seq)])
        for _, message in pending:
            record.add_message(message)
        return record

    @property
    def ended(self) -> bool:
        return self.fold.state in TERMINAL_STATES

    @property
    def last(self) -> int:
        """The `seq` of the last event; 0 before the first."""
        return len(self._packed) + len(self._entries)

    @property
    def turns(self) -> int:
        """The number of messages. The run of each ends with one question or with the end of the task."""
        return 1 + len(self._messages)

    @property
    def messages(self) -> list[tuple[int, Message]]:
        """The messages after the first, each with the `seq` of the last event before it."""
        return list(self._messages)

    @property
    def last_artifact(self) -> PackedEvent | None:
        """The last event of a resting task that is not a status: its answer, if it has one."""
        return next((event for event in reversed(self._packed) if not event.is_status), None)

    @property
    def resting(self) -> bool:
        """The task has ended or waits for a message."""
        return self.ended or len(self._pauses) >= self.turns

    @property
    def waits(self) -> bool:
        """The task waits for a person, and no answer has arrived."""
        return self.resting and self.fold.state in WAITING_STATES

    def append(self, events: Iterable[WireEvent]) -> list[Entry]:
        """Number the events, add them and wake the followers."""
        entries = []
        for event in events:
            entry = Entry(self.last + 1, event)
            stamp(event, entry.seq)
            self._entries.append(entry)
            self.fold.apply(event)
            if suspends_task(event):
                self._pauses.append(entry.seq)
            entries.append(entry)
        if self.resting:
            self._packed += [PackedEvent.of(entry.event) for entry in self._entries]
            self._entries = []
        self._wake()
        return entries

    def add_message(self, message: Message) -> None:
        copy = Message()
        copy.CopyFrom(message)
        self.insert_message(copy, self.last)

    def insert_message(self, message: Message, after: int) -> None:
        """Add a message that came after event `after`, and before later events that may be here already."""
        self._messages.append((after, message))
        if after == self.last:
            self.fold.add_message(message)
        else:
            self.fold = self._folded(self.last)

    def request(self, caller: Principal) -> StoredRequest:
        """The last message, with the caller who sent it."""
        after, message = self._messages[-1] if self._messages else (0, self.submitted.history[0])
        return StoredRequest(message, caller, after)

    def message_place(self, message_id: str) -> int | None:
        """The `seq` of the last event before the message with this id; None if there is no such message."""
        sent = [(0, message) for message in self.submitted.history[:1]] + self._messages
        return next((after for after, message in sent if message.message_id == message_id), None)

    def entries(self, after: int = 0) -> list[Entry]:
        """The entries with a `seq` greater than `after`."""
        packed = self._packed[after:]
        unpacked = [Entry(after + place, event.unpacked(after + place)) for place, event in enumerate(packed, 1)]
        return unpacked + self._entries[max(0, after - len(self._packed)) :]

    def packed(self) -> list[PackedEvent]:
        """All events, serialized."""
        return self._packed + [PackedEvent.of(entry.event) for entry in self._entries]

    def snapshot(self, at: int | None = None) -> Snapshot:
        seq = self.last if at is None else min(at, self.last)
        fold = self.fold if seq == self.last else self._folded(seq)
        task = fold.task()
        if seq:
            task.metadata.fields["seq"].number_value = seq
        return Snapshot(seq, task)

    def end_following(self) -> None:
        """End the iterations of `follow` after the stored entries."""
        self._is_followed = False
        self._wake()

    async def follow(self, after: int, turns: int) -> AsyncIterator[Sequence[Entry]]:
        """Yield batches of entries after `after`, stored and new, to the end of the task or of the run `turns`."""
        position, is_over = after, False
        while not is_over:
            found = []
            for entry in self.entries(position):
                found.append(entry)
                position = entry.seq
                if is_over := ends_task(entry.event) or (self._pauses_until(position) >= turns and self.turns > turns):
                    break
            if found:
                yield found
            elif self.ended or self._pauses_until(position) >= turns or not self._is_followed:
                return
            else:
                await self.changed.wait()

    def _pauses_until(self, seq: int) -> int:
        return sum(pause <= seq for pause in self._pauses)

    def _wake(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def _folded(self, seq: int) -> TaskFold:
        fold = TaskFold(self.submitted)
        pending = deque(self._messages)
        for entry in self.entries()[:seq]:
            while pending and pending[0][0] < entry.seq:
                fold.add_message(pending.popleft()[1])
            fold.apply(entry.event)
        return fold


def continues_after_end(events: Sequence[WireEvent]) -> bool:
    return any(ends_task(event) for event in events[:-1])
