"""A checkpointer that stores conversations in a file."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any, Final, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.sqlite import SqliteSaver

from ai_platform_engineering.compat.checkpoint_serializer import CheckpointSerializer
from ai_platform_engineering.compat.checkpoint_sqlite import (
    create_tables,
    drop_interrupt,
    first_id_since,
    idle_threads,
    keep_latest,
    put,
)
from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.checkpoints.pending_forms import UnreadableConversationError, migrate_pending_forms
from ai_platform_engineering.storage.conversation_formats import check_format, write_format
from ai_platform_engineering.storage.data_files import (
    ConversationsFileError,
    conversations_file,
    conversations_format,
)
from ai_platform_engineering.storage.sqlite.damage import check_pages, is_checked_at_start
from ai_platform_engineering.storage.sqlite.shared_file import is_busy
from ai_platform_engineering.storage.sqlite.wal_checkpointer import WalCheckpointer
from ai_platform_engineering.utils.private_files import create_private_file

T = TypeVar("T")

_BUSY_SECONDS: Final = 10.0


class FileSaver(SqliteSaver):
    """LangGraph's SQLite checkpointer over one file, used on the event loop.

    Statements run on the event loop: they do not wait for the disk, and most of their time is Python code, which a
    thread would not run in parallel. LangGraph's asynchronous saver switches to a thread for every statement, which
    costs more than the statement. Only if another process is writing, the wait for it is in a thread.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path, agent: str = SUPERVISOR) -> None:
        super().__init__(connection, serde=CheckpointSerializer())
        known = conversations_format(agent)
        found = check_format(connection, path, known)
        create_tables(self)
        if found < known.version:
            migrate_pending_forms(self)
        write_format(connection, known)
        connection.commit()
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA busy_timeout = 0")
        self._wal_checkpointer = WalCheckpointer(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="conversations")
        self._last_in_thread: Future[Any] | None = None

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings: Settings, agent: str = SUPERVISOR) -> AsyncIterator[FileSaver]:
        path = conversations_file(settings, agent)
        try:
            create_private_file(path)
            connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
        except (sqlite3.Error, OSError) as error:
            raise ConversationsFileError(path, error) from error
        with closing(connection):
            try:
                if is_checked_at_start(path):
                    check_pages(connection)
                saver = cls(connection, path, agent)
            except (sqlite3.Error, UnreadableConversationError) as error:
                raise ConversationsFileError(path, error) from error
            try:
                # Usually a conversation is deleted with its tasks. Tasks in memory do not survive a restart.
                if settings.event_log == "memory":
                    await saver.forget_idle(settings.event_log_max_tasks, settings.event_log_max_age_days)
                yield saver
            finally:
                saver.close()

    def close(self) -> None:
        self._thread.shutdown()
        self._wal_checkpointer.close()

    async def keep_latest(self, thread_id: str) -> bool:
        return await self._run(keep_latest, self, thread_id)

    async def release(self, thread_id: str, for_good: bool) -> None:
        if for_good:
            await self.adelete_thread(thread_id)
        else:
            await self._run(drop_interrupt, self, thread_id)

    async def forget(self, thread_ids: Iterable[str]) -> None:
        for thread_id in thread_ids:
            await self.adelete_thread(thread_id)

    async def forget_idle(self, max_conversations: int, max_age_days: float) -> None:
        """Delete conversations that were idle for `max_age_days`, and all but the most recent `max_conversations`."""
        oldest = first_id_since(time.time_ns() - int(max_age_days * 86_400e9)) if max_age_days else ""
        await self.forget(await self._run(idle_threads, self, max_conversations, oldest))

    async def expire(self, max_age_minutes: float) -> None:
        oldest = first_id_since(time.time_ns() - int(max_age_minutes * 60e9))
        await self.forget(await self._run(idle_threads, self, sys.maxsize, oldest))

    async def ping(self) -> None:
        await self._run(self.conn.execute, "SELECT 1 FROM checkpoints LIMIT 1")

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._run(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name in the base class
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        found = await self._run(lambda: [*self.list(config, filter=filter, before=before, limit=limit)])
        for checkpoint in found:
            yield checkpoint

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._run(put, self, config, checkpoint, metadata)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._run(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self._run(self.delete_thread, thread_id)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._run(lambda: self.get_delta_channel_history(config=config, channels=channels))

    async def _run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Each operation is one transaction, so one that finds the file busy has changed nothing and can be
        repeated."""
        self._wal_checkpointer.note_use()
        if self._last_in_thread is None or self._last_in_thread.done():
            try:
                return work(*arguments)
            except sqlite3.OperationalError as error:
                if not is_busy(error):
                    raise
        waiting = self._thread.submit(self._wait_and_run, work, *arguments)
        self._last_in_thread = waiting
        return await asyncio.shield(asyncio.wrap_future(waiting))

    def _wait_and_run(self, work: Callable[..., T], *arguments: Any) -> T:
        self.conn.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}")
        try:
            return work(*arguments)
        finally:
            self.conn.execute("PRAGMA busy_timeout = 0")
