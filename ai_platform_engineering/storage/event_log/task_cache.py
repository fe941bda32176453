"""The tasks of a log file that are in memory."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final
from weakref import WeakValueDictionary

from ai_platform_engineering.storage.event_log.task_record import TaskRecord

_MAX_ENDED_EVENTS: Final = 20_000
_MAX_WAITING_EVENTS: Final = 500
"""Many tasks may wait for a person for days; this covers those that have just begun to wait."""


class CachedTask:
    """A task in memory, with the counters of writes that are submitted but not committed yet.

    `epoch` is that of the last claim by this process; 0 if there was none.
    """

    __slots__ = ("__weakref__", "ends", "epoch", "last", "number", "record", "writes")

    def __init__(self, number: int, record: TaskRecord) -> None:
        self.number = number
        self.record = record
        self.epoch = 0
        self.writes = 0
        self.roll_back()

    def roll_back(self) -> None:
        """Reset the counters to what is committed."""
        self.last = self.record.last
        self.ends = self.record.ended


class TaskCache:
    """Running tasks stay in memory, others while there is room, and any task while a follower holds it.

    A task is in memory at most once, so all followers share one record.
    """

    def __init__(self) -> None:
        self._tasks: WeakValueDictionary[str, CachedTask] = WeakValueDictionary()
        self._running: dict[str, CachedTask] = {}
        self._ended = _RecentTasks(_MAX_ENDED_EVENTS)
        self._waiting = _RecentTasks(_MAX_WAITING_EVENTS)

    def __len__(self) -> int:
        return len(self._tasks)

    def __contains__(self, task_id: str) -> bool:
        return task_id in self._tasks

    @property
    def running(self) -> int:
        """The number of tasks that are in memory because work on them is not complete."""
        return len(self._running)

    @property
    def ended_events(self) -> int:
        """The number of events of ended tasks in memory."""
        return self._ended.events

    def get(self, task_id: str) -> CachedTask | None:
        return self._tasks.get(task_id)

    def put(self, task_id: str, task: CachedTask) -> None:
        """Add a task, or move it to where its state belongs."""
        is_running = bool(task.writes) or not task.record.resting
        if is_running and self._running.get(task_id) is task:
            return
        self.drop(task_id)
        self._tasks[task_id] = task
        if is_running:
            self._running[task_id] = task
        else:
            (self._ended if task.record.ended else self._waiting).put(task_id, task)

    def drop(self, task_id: str) -> None:
        self._tasks.pop(task_id, None)
        self._running.pop(task_id, None)
        self._ended.drop(task_id)
        self._waiting.drop(task_id)


class _RecentTasks:
    """The most recently used tasks, up to a number of events."""

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._tasks: OrderedDict[str, CachedTask] = OrderedDict()
        self.events = 0

    def put(self, task_id: str, task: CachedTask) -> None:
        self._tasks[task_id] = task
        self.events += task.record.last
        while self.events > self._max_events and len(self._tasks) > 1:
            _, oldest = self._tasks.popitem(last=False)
            self.events -= oldest.record.last

    def drop(self, task_id: str) -> None:
        task = self._tasks.pop(task_id, None)
        if task is not None:
            self.events -= task.record.last
