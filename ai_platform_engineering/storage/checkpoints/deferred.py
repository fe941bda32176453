"""Checkpoints that wait in memory until something needs them.

After each step of a run LangGraph stores a checkpoint with the whole conversation. One that can be restored otherwise
(`omissions.py`) waits here. Usually the next checkpoint replaces it. It is stored before a write or a read that needs
it, for example when a run fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata

from ai_platform_engineering.compat.checkpoint_sqlite import checkpoint_config
from ai_platform_engineering.compat.langgraph import outer_namespace
from ai_platform_engineering.storage.checkpoints.active_conversations import ActiveConversations, Place, place_of
from ai_platform_engineering.storage.checkpoints.conversation_store import ConversationStore
from ai_platform_engineering.storage.checkpoints.fencing import RunClaims
from ai_platform_engineering.storage.checkpoints.omissions import can_be_restored, ends_nested_graph
from ai_platform_engineering.storage.event_log.event_log import SupersededError


@dataclass(frozen=True, slots=True)
class _Deferred:
    """`versions` are those of all values that the store does not have."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    versions: ChannelVersions


class DeferredCheckpoints:
    """`active` has the checkpoints before those that are put."""

    def __init__(self, active: ActiveConversations, claims: RunClaims) -> None:
        self._active = active
        self._claims = claims
        self._by_thread: dict[str, dict[str, _Deferred]] = {}
        self._in_flight: dict[Place, set[asyncio.Future[None]]] = {}

    async def put(
        self,
        store: ConversationStore,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, or defer it."""
        place = place_of(config)
        if in_flight := self._in_flight.get(place):
            await asyncio.wait({*in_flight})
        before = self._find(place)
        versions = {**before.versions, **new_versions} if before is not None else new_versions
        if can_be_restored(checkpoint, metadata, self._active.parent(config)):
            thread_id, namespace = place
            deferred = _Deferred(config, checkpoint, metadata, versions)
            self._by_thread.setdefault(thread_id, {})[namespace] = deferred
            return checkpoint_config(config, checkpoint)
        if ends_nested_graph(config, checkpoint):
            stored = checkpoint_config(config, checkpoint)
        else:
            await self._store_outer(store, place)
            stored = await store.aput(config, checkpoint, metadata, versions)
        self._drop(place)
        return stored

    async def store(self, store: ConversationStore, place: Place, checkpoint_id: str | None) -> None:
        """Store the checkpoint with this id if it was deferred; without an id, the last one."""
        found = self._find(place)
        if found is None or checkpoint_id not in (None, found.checkpoint["id"]):
            return
        await self._store_outer(store, place)
        # If another process has claimed the run, the conversation continues with the checkpoints of that process.
        with suppress(SupersededError):
            await self._claims.check(found.config)
            await store.aput(found.config, found.checkpoint, found.metadata, found.versions)
        if self._find(place) is found:
            self._drop(place)

    async def store_all(self, store: ConversationStore, thread_id: str) -> None:
        for namespace in [*self._by_thread.get(thread_id, ())]:
            await self.store(store, (thread_id, namespace), None)

    async def _store_outer(self, store: ConversationStore, place: Place) -> None:
        """Store the checkpoint whose task runs a nested graph: the namespace of the graph depends on its id."""
        thread_id, namespace = place
        if namespace:
            await self.store(store, (thread_id, outer_namespace(namespace)), None)

    def drop(self, thread_id: str) -> None:
        self._by_thread.pop(thread_id, None)

    @contextmanager
    def writing(self, place: Place) -> Iterator[None]:
        """While results of tool calls are written, the checkpoint after them waits: it may be deferred only if all of
        them are stored. LangGraph begins to write results before it puts the checkpoint."""
        done = asyncio.get_running_loop().create_future()
        in_flight = self._in_flight.setdefault(place, set())
        in_flight.add(done)
        try:
            yield
        finally:
            done.set_result(None)
            in_flight.discard(done)
            if not in_flight:
                del self._in_flight[place]

    def _find(self, place: Place) -> _Deferred | None:
        thread_id, namespace = place
        return self._by_thread.get(thread_id, {}).get(namespace)

    def _drop(self, place: Place) -> None:
        thread_id, namespace = place
        if (found := self._by_thread.get(thread_id)) is not None:
            found.pop(namespace, None)
            if not found:
                del self._by_thread[thread_id]
