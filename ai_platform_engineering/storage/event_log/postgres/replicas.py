"""The tasks of the log in Postgres that are in memory: copies that may lag behind the database."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from weakref import WeakValueDictionary

from a2a.types.a2a_pb2 import Message

from ai_platform_engineering.storage.event_log.postgres.reader import History
from ai_platform_engineering.storage.event_log.task_record import Entry, PackedEvent, TaskRecord

_MAX_EVENTS: Final = 20_000


class Replica:
    """The copy of a task. All followers in this process share it."""

    __slots__ = ("__weakref__", "followers", "is_behind", "is_fetching", "number", "record", "task_id")

    def __init__(self, task_id: str, number: int, record: TaskRecord) -> None:
        self.task_id = task_id
        self.number = number
        self.record = record
        self.followers = 0
        self.is_behind = False
        self.is_fetching = False

    @property
    def place(self) -> tuple[int, int]:
        """The `seq` of the last event and the number of later messages that the copy has."""
        return self.record.last, self.record.turns - 1

    def lacks(self, last: int, messages: int) -> bool:
        """Whether the database, which has this much, has more."""
        return last > self.record.last or messages > self.record.turns - 1

    def append(self, entries: list[Entry], messages: int) -> bool:
        """Add events that this process has committed. False if the copy lacks something that came before them."""
        last, known = self.place
        if entries and (entries[0].seq != last + 1 or messages != known):
            return entries[-1].seq <= last and messages <= known
        self.record.append(entry.event for entry in entries)
        return True

    def add_message(self, message: Message, place: int, after: int) -> bool:
        """Add a message that this process has committed. False if the copy lacks something that came before it."""
        last, known = self.place
        if place != known or after > last:
            return place < known
        self.record.insert_message(message, after)
        return True

    def apply(self, news: History) -> None:
        """Add what was read from the database. A part of it may have been added meanwhile."""
        for position, place, is_status, body in news:
            last, known = self.place
            if is_status is None:
                if place == known + 1:
                    self.record.insert_message(Message.FromString(body), position)
            elif position == last + 1:
                self.record.append([PackedEvent(is_status, body).unpacked(position)])


class Replicas:
    """Followed tasks stay in memory, others while there is room. A task is in memory at most once."""

    def __init__(self) -> None:
        self.followed: dict[int, Replica] = {}
        self._all: WeakValueDictionary[str, Replica] = WeakValueDictionary()
        self._recent: OrderedDict[str, tuple[Replica, int]] = OrderedDict()
        self._events = 0

    def get(self, task_id: str) -> Replica | None:
        return self._all.get(task_id)

    def put(self, replica: Replica) -> None:
        """Add a task, or note that it was used and may have grown."""
        self._forget_size(replica.task_id)
        self._all[replica.task_id] = replica
        size = replica.record.last + 1
        self._recent[replica.task_id] = replica, size
        self._events += size
        while self._events > _MAX_EVENTS and len(self._recent) > 1:
            self._forget_size(next(iter(self._recent)))

    def drop(self, task_id: str) -> None:
        self._all.pop(task_id, None)
        self._forget_size(task_id)

    @contextmanager
    def following(self, replica: Replica) -> Iterator[None]:
        self.followed[replica.number] = replica
        replica.followers += 1
        try:
            yield
        finally:
            replica.followers -= 1
            if not replica.followers and self.followed.get(replica.number) is replica:
                del self.followed[replica.number]

    def _forget_size(self, task_id: str) -> None:
        _, size = self._recent.pop(task_id, (None, 0))
        self._events -= size
