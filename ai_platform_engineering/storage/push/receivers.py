"""The receivers and the interface of their stores."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from a2a.types.a2a_pb2 import TaskPushNotificationConfig

from ai_platform_engineering.utils.errors import ReadableError


class ReceiverStoreError(ReadableError):
    """The receivers cannot be read or stored. The text names the file or the server, and what to do."""


class ReceiverKey(NamedTuple):
    """`owner` is the caller that configured the receiver; the ids of configurations are unique for each owner."""

    task_id: str
    owner: str
    config_id: str


@dataclass(frozen=True, slots=True)
class Receiver:
    """`delivered` is the `seq` of the last event that was delivered, or given up, or that preceded the receiver."""

    owner: str
    config: TaskPushNotificationConfig = field(repr=False)
    delivered: int = 0
    created_ns: int = field(default_factory=time.time_ns)

    @property
    def key(self) -> ReceiverKey:
        return ReceiverKey(self.config.task_id, self.owner, self.config.id)


class ReceiverStore(Protocol):
    """The methods block on I/O and raise `ReceiverStoreError`: call them in a thread."""

    is_shared: bool
    """Whether other processes may store receivers of the tasks of this process."""

    def put(self, receiver: Receiver) -> None:
        """Store a receiver. If one with this key exists, only its configuration is replaced: it misses no event."""

    def get(self, key: ReceiverKey) -> Receiver | None:
        """The receiver with this key."""

    def of_task(self, task_id: str) -> list[Receiver]:
        """The receivers of a task, the oldest first."""

    def keys(self, task_ids: Collection[str]) -> list[ReceiverKey]:
        """The receivers of these tasks."""

    def unfinished(self) -> list[ReceiverKey]:
        """The receivers that did not get the end of their task yet."""

    def tasks(self, created_before_ns: int) -> list[str]:
        """The tasks with receivers that were stored before that time."""

    def mark(self, key: ReceiverKey, delivered: int, *, finished: bool) -> None:
        """Record the last event that needs no delivery any more; `finished` if it ends the task."""

    def delete(self, task_id: str, owner: str | None = None, config_id: str | None = None) -> None:
        """Delete the receivers of a task; of one owner and with one id, if given."""

    def claim(self, key: ReceiverKey) -> bool:
        """Claim the delivery to a receiver. False if another process has it. A claim ends with its process."""

    def release(self, key: ReceiverKey) -> None:
        """End a claim."""

    def close(self) -> None:
        """Close the file or the connections."""
