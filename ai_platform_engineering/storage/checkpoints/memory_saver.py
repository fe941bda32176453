"""Conversations in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.storage.checkpoints.waits import INTERRUPT


class MemorySaver(BaseCheckpointSaver[str]):
    """Conversations in memory. Beyond `max_conversations` the one that was quiet for longest is dropped; one that waits
    for a person is not."""

    def __init__(self, max_conversations: int) -> None:
        super().__init__()
        self._max = max_conversations
        # LangGraph's own saver looks through all conversations to drop one: so each has a saver of its own.
        self._savers: OrderedDict[str, InMemorySaver] = OrderedDict()
        self._waiting: dict[str, InMemorySaver] = {}

    async def keep_latest(self, thread_id: str) -> bool:
        saver = self._found(thread_id)
        if saver is None or not (states := saver.storage[thread_id][""]):
            return True
        last = max(states)
        if any(channel == INTERRUPT for _, channel, _, _ in saver.writes[(thread_id, "", last)].values()):
            self._savers.pop(thread_id, None)
            self._waiting[thread_id] = saver
            return False
        versions = saver.serde.loads_typed(states[last][0])["channel_versions"]
        spaces = saver.storage[thread_id]
        for namespace in [*spaces]:
            if namespace:
                del spaces[namespace]
        spaces[""] = {last: states[last]}
        for key in [key for key in saver.writes if key != (thread_id, "", last)]:
            del saver.writes[key]
        for blob in [*saver.blobs]:
            _, namespace, channel, version = blob
            if namespace or versions.get(channel) != version:
                del saver.blobs[blob]
        return True

    async def release(self, thread_id: str, for_good: bool) -> None:
        if for_good:
            self.delete_thread(thread_id)
        elif (saver := self._found(thread_id)) is not None and (spaces := saver.storage[thread_id]):
            last = max(spaces[""], default="")
            for key in [key for key in saver.writes if key[1] or key[2] == last]:
                del saver.writes[key]
            for namespace in [*spaces]:
                if namespace:
                    del spaces[namespace]
            self._use(thread_id, saver)

    async def forget(self, thread_ids: Iterable[str]) -> None:
        for thread_id in thread_ids:
            self.delete_thread(thread_id)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        saver = self._found(thread_of(config))
        return None if saver is None else saver.get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the base class calls it so
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
        return InMemorySaver.get_next_version(self, current, channel)  # type: ignore[arg-type]  # it has no state

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
