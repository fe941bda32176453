"""One task in memory: what began it, what was said, what happened, and who waits for more."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from a2a.types.a2a_pb2 import Message, Task

from ai_platform_engineering.utils.a2a_common.task_fold import TERMINAL_STATES, TaskFold, ends_task, parks_task
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


class TaskRecord:
    __slots__ = ("__weakref__", "changed", "entries", "fold", "messages", "pauses", "submitted")

    def __init__(self, task: Task) -> None:
        self.submitted = Task()
        self.submitted.CopyFrom(task)
        self.fold = TaskFold(task)
        self.entries: list[Entry] = []
        self.messages: list[tuple[int, Message]] = []
        self.pauses = 0
        self.changed = asyncio.Event()

    @property
    def ended(self) -> bool:
        return self.fold.state in TERMINAL_STATES

    @property
    def turns(self) -> int:
        """How many messages the task has got. Each is worked on once and ends in one pause or in the task's end."""
        return 1 + len(self.messages)

    @property
    def resting(self) -> bool:
        """Nothing will happen to the task unless somebody speaks to it."""
        return self.ended or self.pauses >= self.turns

    def append(self, event: WireEvent) -> Entry:
        entry = Entry(len(self.entries) + 1, event)
        stamp(event, entry.seq)
        self.entries.append(entry)
        self.fold.apply(event)
        self.pauses += parks_task(event)
        return entry

    def add_message(self, message: Message) -> None:
        self.messages.append((len(self.entries), message))
        self.fold.add_message(message)

    def wake(self) -> None:
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    def snapshot(self, at: int | None = None) -> Snapshot:
        seq = len(self.entries) if at is None else min(at, len(self.entries))
        fold = self.fold if seq == len(self.entries) else self._folded(seq)
        task = fold.task()
        if seq:
            task.metadata.fields["seq"].number_value = seq
        return Snapshot(seq, task)

    def follow(self, after: int) -> AsyncIterator[Entry]:
        """What is stored after number `after` and what comes, to the end of the turn that is the last one now."""
        return _follow(self, after, self.turns)

    def _folded(self, seq: int) -> TaskFold:
        fold = TaskFold(self.submitted)
        said = deque(self.messages)
        for entry in self.entries[:seq]:
            while said and said[0][0] < entry.seq:
                fold.add_message(said.popleft()[1])
            fold.apply(entry.event)
        return fold


def goes_on_after_its_end(events: Sequence[WireEvent]) -> bool:
    return any(ends_task(event) for event in events[:-1])


async def _follow(record: TaskRecord, after: int, turns: int) -> AsyncIterator[Entry]:
    entries = record.entries
    pauses = sum(parks_task(entry.event) for entry in entries[:after])
    position = after
    while True:
        while position < len(entries):
            entry = entries[position]
            position += 1
            yield entry
            pauses += parks_task(entry.event)
            if ends_task(entry.event) or (pauses >= turns and record.turns > turns):
                return
        if record.ended or pauses >= turns:
            return
        await record.changed.wait()
