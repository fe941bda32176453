"""One task in memory: what began it, what was said, what happened, and who waits for more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass

from a2a.types.a2a_pb2 import Message, Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent

from ai_platform_engineering.storage.event_log.task_fold import TaskFold, ends_task, parks_task
from ai_platform_engineering.utils.a2a_common.protocol import PARKED_STATES, TERMINAL_STATES
from ai_platform_engineering.utils.a2a_common.wire import WireEvent, stamp


@dataclass(frozen=True, slots=True)
class Entry:
    """One event and its number. The event is shared by all readers and is not changed after it was appended."""

    seq: int
    event: WireEvent


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The task as it was when event `seq` had just happened (0: nothing yet)."""

    seq: int
    task: Task


@dataclass(frozen=True, slots=True)
class PackedEvent:
    """An event as bytes: a fifth of the memory, for tasks that are rarely looked at any more."""

    is_status: bool
    body: bytes

    @classmethod
    def of(cls, event: WireEvent) -> PackedEvent:
        return cls(isinstance(event, TaskStatusUpdateEvent), event.SerializeToString())

    def unpacked(self) -> WireEvent:
        if self.is_status:
            return TaskStatusUpdateEvent.FromString(self.body)
        return TaskArtifactUpdateEvent.FromString(self.body)


class TaskRecord:
    """Events are kept as they are while the task is worked on and packed when it rests."""

    __slots__ = ("__weakref__", "_entries", "_messages", "_packed", "_pauses", "changed", "fold", "submitted")

    def __init__(self, task: Task) -> None:
        self.submitted = Task()
        self.submitted.CopyFrom(task)
        self.fold = TaskFold(task)
        self.changed = asyncio.Event()
        self._packed: list[PackedEvent] = []
        self._entries: list[Entry] = []
        self._messages: list[tuple[int, Message]] = []
        self._pauses: list[int] = []

    @classmethod
    def stored(
        cls,
        submitted: Task,
        events: Sequence[PackedEvent],
        messages: Iterable[tuple[int, Message]],
        folded: Task | None = None,
    ) -> TaskRecord:
        """A task as it was kept; `folded` is what became of one that has ended."""
        record = cls(submitted)
        if folded is not None:
            record.fold = TaskFold(folded)
            record._messages = list(messages)
            record._packed = list(events)
            pauses = (seq for seq, event in enumerate(events, 1) if event.is_status and parks_task(event.unpacked()))
            record._pauses = list(pauses)
            return record
        said = deque(messages)
        for seq, event in enumerate(events, 1):
            while said and said[0][0] < seq:
                record.add_message(said.popleft()[1])
            record.append([event.unpacked()])
        for _, message in said:
            record.add_message(message)
        return record

    @property
    def ended(self) -> bool:
        return self.fold.state in TERMINAL_STATES

    @property
    def last(self) -> int:
        """The number of the last event; 0 before the first."""
        return len(self._packed) + len(self._entries)

    @property
    def turns(self) -> int:
        """How many messages the task has got. Each is worked on once and ends in one pause or in the task's end."""
        return 1 + len(self._messages)

    @property
    def messages(self) -> list[tuple[int, Message]]:
        """The messages after the first, each with the number of the last event before it."""
        return list(self._messages)

    @property
    def resting(self) -> bool:
        """Nothing will happen to the task unless somebody speaks to it."""
        return self.ended or len(self._pauses) >= self.turns

    @property
    def waits(self) -> bool:
        """The task waits for a person, and nobody has answered yet."""
        return self.resting and self.fold.state in PARKED_STATES

    def append(self, events: Iterable[WireEvent]) -> list[Entry]:
        """Number the events, keep them and wake those who wait for them."""
        entries = []
        for event in events:
            entry = Entry(self.last + 1, event)
            stamp(event, entry.seq)
            self._entries.append(entry)
            self.fold.apply(event)
            if parks_task(event):
                self._pauses.append(entry.seq)
            entries.append(entry)
        if self.resting:
            self._packed += [PackedEvent.of(entry.event) for entry in self._entries]
            self._entries = []
        self._wake()
        return entries

    def add_message(self, message: Message) -> None:
        kept = Message()
        kept.CopyFrom(message)
        self._messages.append((self.last, kept))
        self.fold.add_message(kept)

    def entries(self, after: int = 0) -> list[Entry]:
        """What happened after number `after`."""
        packed = self._packed[after:]
        unpacked = [Entry(after + place, event.unpacked()) for place, event in enumerate(packed, 1)]
        return unpacked + self._entries[max(0, after - len(self._packed)) :]

    def snapshot(self, at: int | None = None) -> Snapshot:
        seq = self.last if at is None else min(at, self.last)
        fold = self.fold if seq == self.last else self._folded(seq)
        task = fold.task()
        if seq:
            task.metadata.fields["seq"].number_value = seq
        return Snapshot(seq, task)

    async def follow(self, after: int, turns: int) -> AsyncIterator[Sequence[Entry]]:
        """What is stored after number `after` and what comes, to the end of the task or of turn `turns`.

        Each time all that there is: who follows can pass it on at once.
        """
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
            elif self.ended or self._pauses_until(position) >= turns:
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
        said = deque(self._messages)
        for entry in self.entries()[:seq]:
            while said and said[0][0] < entry.seq:
                fold.add_message(said.popleft()[1])
            fold.apply(entry.event)
        return fold


def goes_on_after_its_end(events: Sequence[WireEvent]) -> bool:
    return any(ends_task(event) for event in events[:-1])
