"""A checkpointer over a store that may fail: conversations are in memory until the store can be used again.

The store is opened at start and reopened after an error, with a growing delay. A conversation that is used meanwhile
moves into memory, and back when the store is open again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final, TypeVar
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    empty_checkpoint,
    get_checkpoint_id,
)

from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.storage.checkpoints.active_conversations import ActiveConversations, place_of
from ai_platform_engineering.storage.checkpoints.conversation_store import (
    STORE_ERRORS,
    ConversationStore,
    StoreAddress,
    store_failure,
)
from ai_platform_engineering.storage.checkpoints.copying import (
    after_earlier,
    pending_writes_by_task,
    put_checkpoints,
)
from ai_platform_engineering.storage.checkpoints.deferred import DeferredCheckpoints
from ai_platform_engineering.storage.checkpoints.fencing import Fence, RunClaims
from ai_platform_engineering.storage.checkpoints.memory_saver import MemorySaver, next_version, thread_of
from ai_platform_engineering.storage.checkpoints.omissions import are_in_next_checkpoint
from ai_platform_engineering.storage.store_timer import NO_TIMER, StoreOperation, StoreTimer
from ai_platform_engineering.utils.background_tasks import stop_tasks

logger = logging.getLogger(__name__)

T = TypeVar("T")

_PING_SECONDS: Final = 5.0
_MIN_REOPEN_SECONDS: Final = 0.25
_MAX_REOPEN_SECONDS: Final = 5.0


class FallbackSaver(BaseCheckpointSaver[str]):
    """`fence` checks the claim of a run before its checkpoints are stored."""

    def __init__(
        self,
        address: StoreAddress,
        max_conversations: int,
        timer: StoreTimer = NO_TIMER,
        fence: Fence | None = None,
    ) -> None:
        super().__init__()
        self._address = address
        self._timer = timer
        self._claims = RunClaims(fence, is_checked_by_store=address.checks_claims)
        self._store: ConversationStore | None = None
        self._opened = AsyncExitStack()
        self._reason: str | None = None
        self._memory = MemorySaver(max_conversations)
        self._active = ActiveConversations()
        self._deferred = DeferredCheckpoints(self._active, self._claims)
        # Conversations in memory, with the number of their changes there.
        self._in_memory: dict[str, int] = {}
        # Those of them that may have a history in the store which could not be read.
        self._without_history: set[str] = set()
        # Those that the store does not take, with the number of changes at the last attempt.
        self._refused: dict[str, int] = {}
        # Forms to drop, or conversations to delete, when the store is open again.
        self._releases: dict[str, bool] = {}
        self._failed = asyncio.Event()
        self._usable = asyncio.Event()
        self._usable.set()

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        address: StoreAddress,
        max_conversations: int,
        *,
        required: bool = False,
        timer: StoreTimer = NO_TIMER,
        fence: Fence | None = None,
    ) -> AsyncIterator[FallbackSaver]:
        """With `required`, raises if the store cannot be opened now."""
        saver = cls(address, max_conversations, timer, fence)
        try:
            await saver._open()
        except STORE_ERRORS as error:
            if required:
                raise SettingsError(
                    f"{address.problem(error)} REQUIRE_PERSISTENCE=true does not allow conversations in memory."
                ) from None
            saver._note_failure(error)
        watching = asyncio.create_task(saver._watch(), name="conversation-store")
        try:
            yield saver
        finally:
            await stop_tasks(watching)
            if saver._in_memory:
                logger.warning("%d conversations were only in memory and are lost", len(saver._in_memory))
            await saver._opened.aclose()

    @property
    def problem(self) -> str | None:
        """Why conversations are in memory now, without addresses; None if they are stored."""
        if self._reason is None:
            return None
        return f"Conversations are in memory, because {self._address.kind} cannot be used: {self._reason}."

    async def usable(self) -> None:
        """Wait until conversations are stored."""
        await self._usable.wait()

    async def keep_latest(self, thread_id: str) -> bool:
        if self._store is None and not self._is_known(thread_id):
            return True

        async def keep(store: ConversationStore) -> bool:
            await self._deferred.store_all(store, thread_id)
            has_ended = await store.keep_latest(thread_id)
            if has_ended:
                self._active.drop(thread_id)
                self._claims.drop(thread_id)
            return has_ended

        return await self._run(thread_id, keep, lambda: self._memory.keep_latest(thread_id), "trim")

    async def release(self, thread_id: str, for_good: bool) -> None:
        if for_good:
            await self.forget([thread_id])
            return
        if await self._released(thread_id, for_good=False):
            self._active.drop(thread_id)
        elif self._is_known(thread_id):
            self._move_to_memory(thread_id)
            await self._memory.release(thread_id, for_good)
            self._in_memory[thread_id] += 1

    async def forget(self, thread_ids: Iterable[str]) -> None:
        for thread_id in thread_ids:
            await self._released(thread_id, for_good=True)
            self._active.drop(thread_id)
            self._without_history.discard(thread_id)
            self._in_memory.pop(thread_id, None)
            self._refused.pop(thread_id, None)
            self._claims.drop(thread_id)
            self._deferred.drop(thread_id)
            self._memory.delete_thread(thread_id)

    async def expire(self, max_age_minutes: float) -> None:
        await self._memory.expire(max_age_minutes)
        if (store := self._store) is not None:
            try:
                await store.expire(max_age_minutes)
            except STORE_ERRORS as error:
                self._fail(store, error)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        async def read(store: ConversationStore) -> CheckpointTuple | None:
            await self._deferred.store(store, place_of(config), get_checkpoint_id(config))
            found = await store.aget_tuple(config)
            self._active.note_read(config, found)
            return found

        return await self._run(thread_of(config), read, lambda: self._memory.aget_tuple(config))

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name in the base class
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        async def read(store: BaseCheckpointSaver[str] | ConversationStore) -> list[CheckpointTuple]:
            return [found async for found in store.alist(config, filter=filter, before=before, limit=limit)]

        async def read_thread(store: ConversationStore) -> list[CheckpointTuple]:
            await self._deferred.store_all(store, thread_id)
            return await read(store)

        if config is not None:
            thread_id = thread_of(config)
            listed = await self._run(thread_id, read_thread, lambda: read(self._memory))
        else:
            listed = [*await read(self._memory), *(await read(self._store) if self._store is not None else [])]
        for found in listed:
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        async def put(store: ConversationStore) -> RunnableConfig:
            await self._claims.check(config)
            stored = await self._deferred.put(store, config, checkpoint, metadata, new_versions)
            self._active.note_checkpoint(config, checkpoint, metadata, stored)
            return stored

        # Memory may not have the values that did not change.
        every_version = checkpoint["channel_versions"]
        return await self._run(
            thread_of(config), put, lambda: self._memory.aput(config, checkpoint, metadata, every_version), "write"
        )

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        if are_in_next_checkpoint(writes, task_path):
            return

        async def put(store: ConversationStore) -> None:
            await self._claims.check(config)
            await self._deferred.store(store, place, get_checkpoint_id(config))
            await store.aput_writes(config, writes, task_id, task_path)
            self._active.note_writes(config, writes, task_id)

        place = place_of(config)
        with self._deferred.writing(place):
            await self._run(
                place[0], put, lambda: self._memory.aput_writes(config, writes, task_id, task_path), "write"
            )

    async def adelete_thread(self, thread_id: str) -> None:
        await self.forget([thread_id])

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> dict[str, DeltaChannelHistory]:
        async def read(store: BaseCheckpointSaver[str] | ConversationStore) -> Any:
            return await store.aget_delta_channel_history(config=config, channels=channels)

        found: dict[str, DeltaChannelHistory] = await self._run(thread_of(config), read, lambda: read(self._memory))
        return found

    def get_next_version(self, current: str | None, channel: None) -> str:
        return next_version(current)

    def with_allowlist(self, extra_allowlist: Any) -> FallbackSaver:
        # A copy would not see the store fail or return.
        return self

    async def _run(
        self,
        thread_id: str,
        in_store: Callable[[ConversationStore], Awaitable[T]],
        in_memory: Callable[[], Awaitable[T]],
        operation: StoreOperation = "read",
    ) -> T:
        store = self._store
        if store is not None and thread_id not in self._in_memory:
            started = time.perf_counter()
            try:
                return await in_store(store)
            except STORE_ERRORS as error:
                self._fail(store, error)
            finally:
                self._timer.observe("checkpoints", self._address.type, operation, time.perf_counter() - started)
        self._move_to_memory(thread_id)
        if operation == "write":
            self._in_memory[thread_id] += 1
        return await in_memory()

    async def _released(self, thread_id: str, *, for_good: bool) -> bool:
        """Whether that is all: the store has done it, and the conversation is not in memory.

        What the store cannot do now is done when it is open again.
        """
        if (store := self._store) is not None:
            try:
                if not for_good:
                    await self._deferred.store_all(store, thread_id)
                await store.release(thread_id, for_good)
            except STORE_ERRORS as error:
                self._fail(store, error)
            else:
                return thread_id not in self._in_memory
        self._releases[thread_id] = for_good or self._releases.get(thread_id, False)
        return False

    def _is_known(self, thread_id: str) -> bool:
        return thread_id in self._in_memory or thread_id in self._active

    def _move_to_memory(self, thread_id: str) -> None:
        if thread_id in self._in_memory:
            return
        if thread_id not in self._active:
            self._without_history.add(thread_id)
            logger.warning(
                "Conversation %s continues without its earlier messages, if it has any: they are in %s, which cannot be"
                " used now",
                thread_id,
                self._address.kind,
            )
        self._in_memory[thread_id] = 0
        put_checkpoints(self._memory, self._active.take(thread_id))
        self._deferred.drop(thread_id)

    def _fail(self, store: ConversationStore, error: Exception) -> None:
        """Stop using the store, unless that has happened already."""
        if self._store is store:
            self._store = None
            self._note_failure(error)
            self._failed.set()

    def _note_failure(self, error: Exception) -> None:
        if self._reason is None:
            logger.warning(
                "CONVERSATIONS ARE NOT STORED. %s They are in memory until it can be used again, and lost if this"
                " process ends before.",
                self._address.problem(error),
            )
        self._reason = store_failure(error)
        self._usable.clear()

    async def _watch(self) -> None:
        delay = _MIN_REOPEN_SECONDS
        while True:
            if (store := self._store) is not None:
                if self._reason is None:
                    delay = _MIN_REOPEN_SECONDS
                await self._wait_for_failure(store)
                continue
            try:
                await self._open()
            except Exception as error:  # the next attempt may succeed, whatever it was
                self._reason = store_failure(error)
            if self._store is None:
                await asyncio.sleep(delay)
                delay = min(2 * delay, _MAX_REOPEN_SECONDS)

    async def _wait_for_failure(self, store: ConversationStore) -> None:
        self._failed.clear()
        try:
            async with asyncio.timeout(_PING_SECONDS if self._address.is_server else None):
                await self._failed.wait()
        except TimeoutError:
            try:
                await store.ping()
            except STORE_ERRORS as error:
                self._fail(store, error)
            else:
                if self._store is store:  # an operation may have failed meanwhile
                    await self._write_back(store)

    async def _open(self) -> None:
        with suppress(Exception):  # of a server that is gone
            await self._opened.aclose()
        self._opened = AsyncExitStack()
        store = await self._opened.enter_async_context(self._address.opened())
        # From here on conversations are read from the store, except those that are still in memory.
        self._store = store
        if self._reason is None:
            return
        written = await self._write_back(store)
        if self._store is store:
            self._reason = None
            self._usable.set()
            logger.warning("%s can be used again; %d conversations were written to it", self._address.kind, written)

    async def _write_back(self, store: ConversationStore) -> int:
        """The number of conversations that moved from memory to the store."""
        written = 0
        try:
            await self._release_deferred(store)
            for thread_id in [*self._in_memory]:
                written += await self._write_conversation(store, thread_id)
            await self._release_deferred(store)
        except STORE_ERRORS as error:
            self._fail(store, error)
        return written

    async def _release_deferred(self, store: ConversationStore) -> None:
        for thread_id, for_good in [*self._releases.items()]:
            await store.release(thread_id, for_good)
            if self._releases.get(thread_id) == for_good:
                del self._releases[thread_id]

    async def _write_conversation(self, store: ConversationStore, thread_id: str) -> bool:
        """Move a conversation from memory to the store; false if the store does not take it."""
        if await self._claims.is_superseded(thread_id):
            logger.warning("Conversation %s was continued by another process; its copy in memory is dropped", thread_id)
            self._drop_from_memory(thread_id)
            return False
        is_written = False
        while (changes := self._in_memory.get(thread_id)) is not None and self._refused.get(thread_id) != changes:
            config: RunnableConfig = {"configurable": {"thread_id": thread_id}}
            checkpoints = sorted(self._memory.list(config), key=lambda found: found.checkpoint["id"])
            try:
                if thread_id in self._without_history:
                    earlier = await store.aget_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
                    checkpoints = after_earlier(earlier, checkpoints)
                if is_written:  # a form may have been released since
                    await store.release(thread_id, False)
                for found in checkpoints:
                    await _put(store, found)
                is_written = True
            except STORE_ERRORS as error:
                await _check_writing(store)
                self._refused[thread_id] = changes
                logger.warning(
                    "Conversation %s stays in memory, it cannot be stored: %s", thread_id, store_failure(error)
                )
                return False
            if self._in_memory.get(thread_id) == changes:
                self._drop_from_memory(thread_id)
                for found in checkpoints:
                    self._active.add(found)
                return True
        if is_written and thread_id not in self._in_memory:  # deleted meanwhile
            self._releases[thread_id] = True
        return False

    def _drop_from_memory(self, thread_id: str) -> None:
        self._in_memory.pop(thread_id, None)
        self._without_history.discard(thread_id)
        self._refused.pop(thread_id, None)
        self._memory.delete_thread(thread_id)


async def _put(store: ConversationStore, found: CheckpointTuple) -> None:
    parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
    config: RunnableConfig = {"configurable": {**found.config["configurable"], "checkpoint_id": parent}}
    await store.aput(config, found.checkpoint, found.metadata, found.checkpoint["channel_versions"])
    for path, task_id, writes in pending_writes_by_task(found):
        await store.aput_writes(found.config, writes, task_id, path)


async def _check_writing(store: ConversationStore) -> None:
    """Raise if the store takes no conversation at all: it may answer and have no space left."""
    thread_id = f"platform-engineer-check-{uuid4()}"
    config: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    await store.aput(config, empty_checkpoint(), {}, {})
    await store.release(thread_id, True)
