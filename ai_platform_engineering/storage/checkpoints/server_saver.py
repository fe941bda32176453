"""The base of checkpointers that store conversations on a server: our interface over one of LangGraph's savers."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, ClassVar, Final, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from ai_platform_engineering.storage.checkpoints.memory_saver import next_version, thread_of
from ai_platform_engineering.storage.servers.errors import StoreError

T = TypeVar("T")

OPERATION_SECONDS: Final = 15.0
"""For one operation with its retry. A server that hangs is noticed after this time."""
_CANCEL_SECONDS: Final = 2.0


class ServerSaver(BaseCheckpointSaver[str], ABC):
    """Delegates to the maintained saver of a server, and raises its errors as `StoreError`."""

    _errors: ClassVar[tuple[type[Exception], ...]]

    def __init__(self, serializer: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serializer)
        self._attempts: set[asyncio.Task[Any]] = set()

    @abstractmethod
    def _saver(self, thread_id: str) -> BaseCheckpointSaver[Any]:
        """The saver for a conversation."""

    @abstractmethod
    def _store_error(self, error: Exception) -> StoreError: ...

    async def _reconnected(self, error: Exception) -> bool:
        """Whether an operation that failed is repeated, for example because the server had closed an idle connection.
        All operations may be repeated: a write replaces rows with the same key."""
        return False

    @abstractmethod
    async def ping(self) -> None:
        """Raise `StoreError` if the server does not answer."""

    @abstractmethod
    async def keep_latest(self, thread_id: str) -> bool: ...

    @abstractmethod
    async def _drop_interrupt(self, thread_id: str) -> None: ...

    async def expire(self, max_age_minutes: float) -> None:
        """Delete conversations that were idle for so long, unless the server itself does."""

    async def release(self, thread_id: str, for_good: bool) -> None:
        await (self.adelete_thread(thread_id) if for_good else self._drop_interrupt(thread_id))

    async def forget(self, thread_ids: Iterable[str]) -> None:
        for thread_id in thread_ids:
            await self.adelete_thread(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._run(lambda: self._saver(thread_of(config)).aget_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name in the base class
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async def listed() -> list[CheckpointTuple]:
            saver = self._saver("" if config is None else thread_of(config))
            return [found async for found in saver.alist(config, filter=filter, before=before, limit=limit)]

        for found in await self._run(listed):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._run(lambda: self._saver(thread_of(config)).aput(config, checkpoint, metadata, new_versions))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        if writes:
            await self._run(lambda: self._saver(thread_of(config)).aput_writes(config, writes, task_id, task_path))

    async def adelete_thread(self, thread_id: str) -> None:
        await self._run(lambda: self._saver(thread_id).adelete_thread(thread_id))

    def get_next_version(self, current: str | None, channel: None) -> str:
        return next_version(current)

    async def _run(self, operation: Callable[[], Awaitable[T]]) -> T:
        attempt = asyncio.ensure_future(self._attempt(operation))
        self._attempts.add(attempt)
        attempt.add_done_callback(self._attempts.discard)
        attempt.add_done_callback(_ignore_late_error)
        try:
            # Not `asyncio.timeout`: a driver may wait for the server when it is cancelled.
            await asyncio.wait({attempt}, timeout=OPERATION_SECONDS)
        finally:
            attempt.cancel()
        if not attempt.done():
            raise StoreError(f"it did not answer within {OPERATION_SECONDS:g} seconds")
        return attempt.result()

    async def end_attempts(self) -> None:
        """Wait for cancelled operations before the client is closed: one may still open a connection."""
        if self._attempts:
            await asyncio.wait({*self._attempts}, timeout=_CANCEL_SECONDS)

    async def _attempt(self, operation: Callable[[], Awaitable[T]]) -> T:
        try:
            try:
                return await operation()
            except self._errors as error:
                if not await self._reconnected(error):
                    raise
                return await operation()
        except self._errors as error:
            raise self._store_error(error) from None


def _ignore_late_error(attempt: asyncio.Future[Any]) -> None:
    if not attempt.cancelled():
        attempt.exception()
