"""A checkpointer that keeps conversations in memory."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.compat import checkpoint_memory
from ai_platform_engineering.compat.checkpoint_sqlite import first_id_since

_VERSIONS: Final = InMemorySaver()


class MemorySaver(BaseCheckpointSaver[str]):
    """Conversations in memory. Above `max_conversations` the one that was idle longest is deleted, but never one with
    an open form."""

    def __init__(self, max_conversations: int) -> None:
        super().__init__()
        checkpoint_memory.check_tables()
        self._max = max_conversations
        # LangGraph's saver scans all conversations to delete one, so each conversation has a saver of its own.
        self._savers: OrderedDict[str, InMemorySaver] = OrderedDict()
        self._waiting: dict[str, InMemorySaver] = {}

    async def keep_latest(self, thread_id: str) -> bool:
        saver = self._found(thread_id)
        if saver is None:
            return True
        if checkpoint_memory.has_interrupt(saver, thread_id):
            self._savers.pop(thread_id, None)
            self._waiting[thread_id] = saver
            return False
        checkpoint_memory.keep_latest(saver, thread_id)
        return True

    async def release(self, thread_id: str, for_good: bool) -> None:
        if for_good:
            self.delete_thread(thread_id)
        elif (saver := self._found(thread_id)) is not None:
            checkpoint_memory.drop_interrupt(saver, thread_id)
            self._use(thread_id, saver)

    async def forget(self, thread_ids: Iterable[str]) -> None:
        for thread_id in thread_ids:
            self.delete_thread(thread_id)

    async def expire(self, max_age_minutes: float) -> None:
        """Delete conversations that were idle for so long, also those with an open form."""
        oldest = first_id_since(time.time_ns() - int(max_age_minutes * 60e9))
        savers = {**self._savers, **self._waiting}
        await self.forget(
            [thread for thread, saver in savers.items() if checkpoint_memory.last_id(saver, thread) < oldest]
        )

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        saver = self._found(thread_of(config))
        return None if saver is None else saver.get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name in the base class
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        threads = [*self._savers, *self._waiting] if config is None else [thread_of(config)]
        for saver in [saver for thread in threads if (saver := self._found(thread)) is not None]:
            yield from saver.list(config, filter=filter, before=before, limit=limit)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._saver(config).put(config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._saver(config).put_writes(config, writes, task_id, task_path)

    def delete_thread(self, thread_id: str) -> None:
        self._savers.pop(thread_id, None)
        self._waiting.pop(thread_id, None)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.get_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for found in self.list(config, filter=filter, before=before, limit=limit):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self.put(config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self.put_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        self.delete_thread(thread_id)

    def get_next_version(self, current: str | None, channel: None) -> str:
        return next_version(current)

    def _found(self, thread_id: str) -> InMemorySaver | None:
        return self._savers.get(thread_id) or self._waiting.get(thread_id)

    def _saver(self, config: RunnableConfig) -> InMemorySaver:
        thread_id = thread_of(config)
        return self._use(thread_id, self._found(thread_id) or InMemorySaver(serde=self.serde))

    def _use(self, thread_id: str, saver: InMemorySaver) -> InMemorySaver:
        self._waiting.pop(thread_id, None)
        self._savers[thread_id] = saver
        self._savers.move_to_end(thread_id)
        while len(self._savers) > self._max:
            self._savers.popitem(last=False)
        return saver


def thread_of(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])


def next_version(current: str | None) -> str:
    """The next version of a channel, in the format that all stores have, so that a conversation can move."""
    return _VERSIONS.get_next_version(current, None)
