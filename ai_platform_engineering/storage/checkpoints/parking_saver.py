"""Conversations in memory, with a file for those that wait for a person."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.storage.checkpoints.memory_saver import MemorySaver, thread_of
from ai_platform_engineering.storage.checkpoints.waiting_file import WaitingFile


class ParkingSaver(MemorySaver):
    """Conversations in memory; one that waits for a person is in a file instead, until its run goes on.

    The file keeps it until that run has ended or waits again.
    """

    def __init__(self, max_conversations: int, file: WaitingFile) -> None:
        super().__init__(max_conversations)
        self._file = file
        # Those in memory that are in the file as well.
        self._in_both: set[str] = set()

    async def keep_latest(self, thread_id: str) -> bool:
        if self._found(thread_id) is None:
            return not self._file.has(thread_id)
        if await super().keep_latest(thread_id):
            await self._drop_from_file([thread_id])
            return True
        self._in_both.add(thread_id)
        await self._file.write(thread_id, self._packed(self._waiting[thread_id]))
        self.delete_thread(thread_id)
        self._in_both.discard(thread_id)
        return False

    async def release(self, thread_id: str, for_good: bool) -> None:
        if not for_good:
            await self._bring_back(thread_id)
            await super().release(thread_id, for_good)
            await self._drop_from_file([thread_id])
        else:
            await self.forget([thread_id])

    async def forget(self, thread_ids: Iterable[str]) -> None:
        forgotten = [*thread_ids]
        await self._drop_from_file(forgotten)
        await super().forget(forgotten)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        await self._bring_back(thread_of(config))
        return await super().aget_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        if config is not None:
            await self._bring_back(thread_of(config))
        async for found in super().alist(config, filter=filter, before=before, limit=limit):
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        await self.forget([thread_id])

    async def _bring_back(self, thread_id: str) -> None:
        if self._found(thread_id) is not None or not self._file.has(thread_id):
            return
        body = await self._file.read(thread_id)
        if body is not None and self._found(thread_id) is None:
            self._in_both.add(thread_id)
            self._use(thread_id, self._unpacked(body))

    async def _drop_from_file(self, thread_ids: Iterable[str]) -> None:
        """Those that are in memory alone, as nearly all are, cost nothing."""
        kept = [thread_id for thread_id in thread_ids if thread_id in self._in_both or self._found(thread_id) is None]
        if kept:
            await self._file.drop(kept)
            self._in_both.difference_update(kept)

    def _packed(self, saver: InMemorySaver) -> bytes:
        """What the saver holds, which are values that are packed already, as one list for each of its tables."""
        states = [
            (thread_id, namespace, checkpoint_id, *checkpoint, *metadata, parent_id)
            for thread_id, spaces in saver.storage.items()
            for namespace, found in spaces.items()
            for checkpoint_id, (checkpoint, metadata, parent_id) in found.items()
        ]
        writes = [
            (*key, *place, channel, *value, path)
            for key, written in saver.writes.items()
            for place, (_, channel, value, path) in written.items()
        ]
        blobs = [(*key, *value) for key, value in saver.blobs.items()]
        return self.serde.dumps_typed([states, writes, blobs])[1]

    def _unpacked(self, body: bytes) -> InMemorySaver:
        saver = InMemorySaver(serde=self.serde)
        states, writes, blobs = self.serde.loads_typed(("msgpack", body))
        for thread_id, namespace, checkpoint_id, kind, checkpoint, metadata_kind, metadata, parent_id in states:
            saved = (kind, checkpoint), (metadata_kind, metadata), parent_id
            saver.storage[thread_id][namespace][checkpoint_id] = saved
        for thread_id, namespace, checkpoint_id, task_id, place, channel, kind, value, path in writes:
            written = saver.writes[(thread_id, namespace, checkpoint_id)]
            written[(task_id, place)] = (task_id, channel, (kind, value), path)
        for thread_id, namespace, channel, version, kind, value in blobs:
            saver.blobs[(thread_id, namespace, channel, version)] = (kind, value)
        return saver
