"""Where conversations are remembered between questions: in a file, or in memory.

The supervisor's are in a file of the data directory unless the settings say otherwise. An agent's own server has them
in memory, and what it was delegated only until that has ended.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.data_files import ConversationsFileError, conversations_file
from ai_platform_engineering.utils.graphs.agent_graph import Graph

T = TypeVar("T")

_BUSY_SECONDS: Final = 10.0
# The channel in which LangGraph notes that a step waits for a person.
_INTERRUPT: Final = "__interrupt__"


@runtime_checkable
class ConversationSaver(Protocol):
    """What our checkpointers can do beside checkpointing."""

    async def keep_latest(self, thread_id: str) -> bool:
        """Drop all of a conversation but its last state; false, and nothing dropped, if something in it waits."""

    async def forget(self, thread_ids: Iterable[str]) -> None:
        """Drop whole conversations."""


@asynccontextmanager
async def checkpointer_for(
    settings: Settings, name: str = SUPERVISOR
) -> AsyncIterator[BaseCheckpointSaver[Any] | None]:
    """The checkpointer of the supervisor, or of the agent `name`, while it is needed."""
    if settings.langgraph_dev:  # LangGraph Studio brings its own
        yield None
    elif settings.conversations == "memory" or name != SUPERVISOR:
        yield MemorySaver(settings.event_log_max_tasks)
    else:
        async with FileSaver.opened(settings) as saver:
            yield saver


async def settle(graph: Graph, thread_id: str, *, for_good: bool = False) -> None:
    """A run has ended: its steps are no longer needed and, if the conversation ends with it, its state neither."""
    saver = graph.checkpointer
    # The value of such a channel is spread over the checkpoints before.
    spread = any(isinstance(channel, DeltaChannel) for channel in graph.channels.values())
    if isinstance(saver, ConversationSaver) and not spread:
        has_ended = await saver.keep_latest(thread_id)
        if has_ended and for_good:
            await saver.forget([thread_id])


class FileSaver(SqliteSaver):
    """LangGraph's SQLite checkpointer over one file, each operation in one trip to one thread.

    LangGraph's own asynchronous variant makes a trip to its thread for every statement.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="conversations")

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings: Settings) -> AsyncIterator[FileSaver]:
        path = conversations_file(settings)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
        except (sqlite3.Error, OSError) as error:
            raise ConversationsFileError(path, error) from error
        try:
            saver = cls(connection)
            try:
                saver.setup()
                connection.execute("PRAGMA synchronous = NORMAL")
            except sqlite3.Error as error:
                raise ConversationsFileError(path, error) from error
            try:
                yield saver
            finally:
                saver._thread.shutdown()
        finally:
            connection.close()

    async def keep_latest(self, thread_id: str) -> bool:
        return await self._in_thread(self._keep_latest, thread_id)

    async def forget(self, thread_ids: Iterable[str]) -> None:
        for thread_id in thread_ids:
            await self.adelete_thread(thread_id)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._in_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the base class calls it so
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = await self._in_thread(lambda: [*self.list(config, filter=filter, before=before, limit=limit)])
        for checkpoint in found:
            yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._in_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._in_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._in_thread(self.delete_thread, thread_id)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._in_thread(lambda: self.get_delta_channel_history(config=config, channels=channels))

    def _keep_latest(self, thread_id: str) -> bool:
        with self.cursor() as cursor:
            (last,) = cursor.execute(
                "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''", (thread_id,)
            ).fetchone()
            waiting = cursor.execute(
                "SELECT 1 FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = ?",
                (thread_id, last, _INTERRUPT),
            ).fetchone()
            if waiting:
                return False
            for table in ("checkpoints", "writes"):
                cursor.execute(
                    f"DELETE FROM {table} WHERE thread_id = ? AND (checkpoint_ns != '' OR checkpoint_id < ?)",  # noqa: S608
                    (thread_id, last or ""),
                )
        return True

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *arguments)


class MemorySaver(BaseCheckpointSaver[str]):
    """Conversations in memory. Beyond `max_conversations` the one that was quiet for longest is dropped."""

    def __init__(self, max_conversations: int) -> None:
        super().__init__()
        self._max = max_conversations
        # LangGraph's own saver looks through all conversations to drop one: so each has a saver of its own.
        self._savers: OrderedDict[str, InMemorySaver] = OrderedDict()

    async def keep_latest(self, thread_id: str) -> bool:
        saver = self._savers.get(thread_id)
        if saver is None or not (states := saver.storage[thread_id][""]):
            return True
        last = max(states)
        if any(channel == _INTERRUPT for _, channel, _, _ in saver.writes[(thread_id, "", last)].values()):
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

    async def forget(self, thread_ids: Iterable[str]) -> None:
        for thread_id in thread_ids:
            self.delete_thread(thread_id)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        saver = self._savers.get(_thread(config))
        return None if saver is None else saver.get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the base class calls it so
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        threads = [*self._savers] if config is None else [_thread(config)]
        for saver in [self._savers[thread] for thread in threads if thread in self._savers]:
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

    def _saver(self, config: RunnableConfig) -> InMemorySaver:
        thread = _thread(config)
        saver = self._savers.setdefault(thread, InMemorySaver(serde=self.serde))
        self._savers.move_to_end(thread)
        while len(self._savers) > self._max:
            self._savers.popitem(last=False)
        return saver


def _thread(config: RunnableConfig) -> str:
    return str(config["configurable"]["thread_id"])
