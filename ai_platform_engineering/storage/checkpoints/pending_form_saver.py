"""A checkpointer that keeps conversations in memory, except those with an open form: these are in a file."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from ai_platform_engineering.storage.checkpoints.memory_saver import MemorySaver, thread_of
from ai_platform_engineering.storage.checkpoints.pending_form_file import PendingFormFile, put_checkpoints


class PendingFormSaver(MemorySaver):
    """Moves a conversation to the file when it waits for a form, and back into memory when its run resumes.

    The copy in the file is deleted when the resumed run has ended, or replaced when it waits for a form again.
    """

    def __init__(self, max_conversations: int, file: PendingFormFile) -> None:
        super().__init__(max_conversations)
        self._file = file
        # Conversations that are both in memory and in the file.
        self._in_both: set[str] = set()

    async def keep_latest(self, thread_id: str) -> bool:
        if self._found(thread_id) is None:
            return not self._file.has(thread_id)
        if await super().keep_latest(thread_id):
            await self._delete_from_file([thread_id])
            return True
        self._in_both.add(thread_id)
        checkpoints = [*self._waiting[thread_id].list({"configurable": {"thread_id": thread_id}})]
        await self._file.write(thread_id, checkpoints)
        self.delete_thread(thread_id)
        self._in_both.discard(thread_id)
        return False

    async def release(self, thread_id: str, for_good: bool) -> None:
        if not for_good:
            await self._load(thread_id)
            await super().release(thread_id, for_good)
            await self._delete_from_file([thread_id])
        else:
            await self.forget([thread_id])

    async def forget(self, thread_ids: Iterable[str]) -> None:
        forgotten = [*thread_ids]
        await self._delete_from_file(forgotten)
        await super().forget(forgotten)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        await self._load(thread_of(config))
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
            await self._load(thread_of(config))
        async for found in super().alist(config, filter=filter, before=before, limit=limit):
            yield found

    async def adelete_thread(self, thread_id: str) -> None:
        await self.forget([thread_id])

    async def _load(self, thread_id: str) -> None:
        """Load a conversation from the file into memory, if it is only there."""
        if self._found(thread_id) is not None or not self._file.has(thread_id):
            return
        checkpoints = await self._file.read(thread_id)
        if checkpoints and self._found(thread_id) is None:
            saver = InMemorySaver(serde=self.serde)
            put_checkpoints(saver, checkpoints)
            self._in_both.add(thread_id)
            self._use(thread_id, saver)

    async def _delete_from_file(self, thread_ids: Iterable[str]) -> None:
        """Does not access the file for conversations that are only in memory, which nearly all are."""
        stored = [thread_id for thread_id in thread_ids if thread_id in self._in_both or self._found(thread_id) is None]
        if stored:
            await self._file.delete(stored)
            self._in_both.difference_update(stored)
