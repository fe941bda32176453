"""The last checkpoints of conversations with a run in progress or an open form, as the store has them.

With them a run continues in memory when the store fails. Conversations without a run are not here: another process may
have changed them in the store since.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)

Place: TypeAlias = tuple[str, str]
"""Thread and namespace."""

_MAX_CONVERSATIONS: Final = 256


class _LastCheckpoint:
    __slots__ = ("stored", "writes")

    def __init__(self, stored: CheckpointTuple) -> None:
        self.stored = stored
        self.writes: dict[tuple[str, int], tuple[str, Any]] = {}

    def with_writes(self) -> CheckpointTuple:
        added = [(task_id, channel, value) for (task_id, _), (channel, value) in self.writes.items()]
        return self.stored._replace(pending_writes=[*(self.stored.pending_writes or ()), *added])


class ActiveConversations:
    """Above a maximum, the conversation that was idle longest is dropped."""

    def __init__(self) -> None:
        self._by_thread: OrderedDict[str, dict[str, _LastCheckpoint]] = OrderedDict()

    def __contains__(self, thread_id: str) -> bool:
        return thread_id in self._by_thread

    def note_read(self, config: RunnableConfig, found: CheckpointTuple | None) -> None:
        if get_checkpoint_id(config):
            return  # an earlier checkpoint, perhaps
        thread_id, namespace = place_of(config)
        checkpoints = self._use(thread_id)
        if found is None:
            checkpoints.pop(namespace, None)
        else:
            checkpoints[namespace] = _LastCheckpoint(found)

    def note_checkpoint(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata, stored: RunnableConfig
    ) -> None:
        thread_id, namespace = place_of(config)
        parent = config if get_checkpoint_id(config) else None
        self._use(thread_id)[namespace] = _LastCheckpoint(CheckpointTuple(stored, checkpoint, metadata, parent))

    def note_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str) -> None:
        thread_id, namespace = place_of(config)
        last = self._by_thread.get(thread_id, {}).get(namespace)
        if last is not None and last.stored.checkpoint["id"] == get_checkpoint_id(config):
            for index, (channel, value) in enumerate(writes):
                last.writes[task_id, WRITES_IDX_MAP.get(channel, index)] = (channel, value)

    def parent(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint before one that is put with this configuration, with its stored writes, if it is here."""
        thread_id, namespace = place_of(config)
        last = self._by_thread.get(thread_id, {}).get(namespace)
        is_parent = last is not None and last.stored.checkpoint["id"] == get_checkpoint_id(config)
        return last.with_writes() if last is not None and is_parent else None

    def add(self, found: CheckpointTuple) -> None:
        thread_id, namespace = place_of(found.config)
        self._use(thread_id)[namespace] = _LastCheckpoint(found)

    def drop(self, thread_id: str) -> None:
        self._by_thread.pop(thread_id, None)

    def take(self, thread_id: str) -> list[CheckpointTuple]:
        """The last checkpoint of each namespace; the conversation is no longer here afterwards."""
        return [last.with_writes() for last in self._by_thread.pop(thread_id, {}).values()]

    def _use(self, thread_id: str) -> dict[str, _LastCheckpoint]:
        found = self._by_thread.setdefault(thread_id, {})
        self._by_thread.move_to_end(thread_id)
        if len(self._by_thread) > _MAX_CONVERSATIONS:
            self._by_thread.popitem(last=False)
        return found


def place_of(config: RunnableConfig) -> Place:
    return str(config["configurable"]["thread_id"]), config["configurable"].get("checkpoint_ns", "")
