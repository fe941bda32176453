"""Conversations in a file."""

from __future__ import annotations

import asyncio
import sqlite3
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

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.checkpoints.waits import INTERRUPT
from ai_platform_engineering.storage.data_files import ConversationsFileError, conversations_file
from ai_platform_engineering.storage.sqlite.shared_file import is_busy
from ai_platform_engineering.storage.sqlite.wal_checkpointer import WalCheckpointer
from ai_platform_engineering.utils.private_files import create_private_file

T = TypeVar("T")

_BUSY_SECONDS: Final = 10.0


class FileSaver(SqliteSaver):
    """LangGraph's SQLite checkpointer over one file, used on the event loop.

    What it does waits for no disk and is soon done, but for what it does in Python, where a thread would not let the
    loop go on either. LangGraph's own asynchronous variant makes a trip to a thread for every statement, each of which
    costs more than the statement. Only when somebody else is writing, that is waited for in a thread.
    """

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        super().__init__(connection)
        self.setup()
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("PRAGMA busy_timeout = 0")
        self._wal_checkpointer = WalCheckpointer(path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="conversations")
        self._last_in_thread: Future[Any] | None = None

    @classmethod
    @asynccontextmanager
    async def opened(cls, settings: Settings) -> AsyncIterator[FileSaver]:
        path = conversations_file(settings)
        try:
            create_private_file(path)
            connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
        except (sqlite3.Error, OSError) as error:
            raise ConversationsFileError(path, error) from error
        with closing(connection):
            try:
                saver = cls(connection, path)
            except sqlite3.Error as error:
                raise ConversationsFileError(path, error) from error
            try:
                yield saver
            finally:
                saver.close()

    def close(self) -> None:
        self._thread.shutdown()
        self._wal_checkpointer.close()

    async def keep_latest(self, thread_id: str) -> bool:
        return await self._run(self._keep_latest, thread_id)

    async def release(self, thread_id: str, for_good: bool) -> None:
        await self._run(self.delete_thread if for_good else self._release, thread_id)

    async def forget(self, thread_ids: Iterable[str]) -> None:
        for thread_id in thread_ids:
            await self.adelete_thread(thread_id)

    async def forget_quiet(self, max_conversations: int, max_age_days: float) -> None:
        """Drop conversations in which nothing has happened for so long, and all but the last so many."""
        oldest = _first_id_since(time.time_ns() - int(max_age_days * 86_400e9)) if max_age_days else ""
        await self.forget(await self._run(self._quiet, max_conversations, oldest))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._run(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the base class calls it so
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
        return await self._run(self.put, config, checkpoint, metadata, new_versions)

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

    def _quiet(self, max_conversations: int, oldest: str) -> list[str]:
        with self.cursor(transaction=False) as cursor:
            rows = cursor.execute(
                "SELECT thread_id, max(checkpoint_id) AS last FROM checkpoints GROUP BY thread_id ORDER BY last DESC"
            ).fetchall()
        return [
            thread_id for place, (thread_id, last) in enumerate(rows) if place >= max_conversations or last < oldest
        ]

    def _release(self, thread_id: str) -> None:
        with self.cursor() as cursor:
            cursor.execute(
                "DELETE FROM writes WHERE thread_id = ? AND (checkpoint_ns != '' OR checkpoint_id = ?)",
                (thread_id, self._last(cursor, thread_id)),
            )
            cursor.execute("DELETE FROM checkpoints WHERE thread_id = ? AND checkpoint_ns != ''", (thread_id,))

    @staticmethod
    def _last(cursor: sqlite3.Cursor, thread_id: str) -> str | None:
        found: tuple[str | None] = cursor.execute(
            "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''", (thread_id,)
        ).fetchone()
        return found[0]

    def _keep_latest(self, thread_id: str) -> bool:
        with self.cursor() as cursor:
            last = self._last(cursor, thread_id)
            waiting = cursor.execute(
                "SELECT 1 FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? AND channel = ?",
                (thread_id, last, INTERRUPT),
            ).fetchone()
            if waiting:
                return False
            for table in ("checkpoints", "writes"):
                cursor.execute(
                    f"DELETE FROM {table} WHERE thread_id = ? AND (checkpoint_ns != '' OR checkpoint_id < ?)",  # noqa: S608
                    (thread_id, last or ""),
                )
        return True

    async def _run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Each operation is one transaction: one that finds the file busy has done nothing yet."""
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


def _first_id_since(time_ns: int) -> str:
    """Where checkpoints of that time begin: their ids are UUIDs of version 6, which begin with the time."""
    ticks = time_ns // 100 + 0x01B21DD213814000
    return f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}-6{ticks & 0xFFF:03x}"
