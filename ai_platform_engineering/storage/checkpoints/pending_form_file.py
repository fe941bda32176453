"""The file in which an agent's server stores conversations while a form in them is open.

LangGraph's `SqliteSaver` stores the checkpoints, in its own tables. A conversation counts as stored once it is in the
table `waiting`, which is written in the same transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver

from ai_platform_engineering.compat.checkpoint_sqlite import create_tables
from ai_platform_engineering.storage.checkpoints.unversioned_pending_forms import (
    UnreadableConversationError,
    stored_conversations,
)
from ai_platform_engineering.storage.conversation_formats import PENDING_FORMS, check_format, write_format
from ai_platform_engineering.storage.data_files import ConversationsFileError
from ai_platform_engineering.utils.private_files import create_private_file

T = TypeVar("T")

_BUSY_SECONDS: Final = 10.0


class _BatchConnection(sqlite3.Connection):
    """A connection that can defer the commits of others: the saver commits after each of its statements."""

    _in_batch = False

    def commit(self) -> None:
        if not self._in_batch:
            super().commit()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """One transaction around several calls of the saver."""
        self.execute("BEGIN IMMEDIATE")
        self._in_batch = True
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        else:
            super().commit()
        finally:
            self._in_batch = False


class PendingFormFile:
    """Used on the event loop. All access is in a background thread, except `has`."""

    def __init__(self, path: Path) -> None:
        try:
            create_private_file(path)
            self._connection = _connect(path)
            self._saver = SqliteSaver(self._connection)
            try:
                self._prepare(path)
                self._index = _connect(path)
            except BaseException:
                self._connection.close()
                raise
        except (sqlite3.Error, OSError, UnreadableConversationError) as error:
            raise ConversationsFileError(path, error) from error
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pending-forms")

    def close(self) -> None:
        self._thread.shutdown()
        self._index.close()
        self._connection.close()

    def has(self, conversation: str) -> bool:
        """Called at the start of every run, so not in the thread: the switch would cost fifty times the query, which
        does not wait for writers."""
        found = self._index.execute("SELECT 1 FROM waiting WHERE conversation = ?", (conversation,)).fetchone()
        return found is not None

    async def read(self, conversation: str) -> list[CheckpointTuple]:
        config: RunnableConfig = {"configurable": {"thread_id": conversation}}
        return await self._run(lambda: [*self._saver.list(config)])

    async def write(self, conversation: str, checkpoints: Sequence[CheckpointTuple]) -> None:
        """Store a conversation in place of its earlier version."""
        await self._run(lambda: self._write(conversation, checkpoints))

    async def delete(self, conversations: Iterable[str]) -> None:
        await self._run(lambda: self._delete([*conversations]))

    def _prepare(self, path: Path) -> None:
        """Create or migrate the tables."""
        check_format(self._connection, path, PENDING_FORMS)
        create_tables(self._saver)
        with self._connection.batch():
            # Another process may have migrated the file since the first check.
            if check_format(self._connection, path, PENDING_FORMS) == PENDING_FORMS.version:
                return
            conversations = stored_conversations(self._connection, self._saver.serde)
            self._connection.execute("DROP TABLE IF EXISTS waiting")
            self._connection.execute("CREATE TABLE waiting (conversation TEXT PRIMARY KEY)")
            for conversation, checkpoints in conversations:
                self._insert(conversation, checkpoints)
            write_format(self._connection, PENDING_FORMS)

    def _write(self, conversation: str, checkpoints: Sequence[CheckpointTuple]) -> None:
        with self._connection.batch():
            self._saver.delete_thread(conversation)
            self._insert(conversation, checkpoints)

    def _insert(self, conversation: str, checkpoints: Sequence[CheckpointTuple]) -> None:
        put_checkpoints(self._saver, checkpoints)
        self._connection.execute("INSERT OR REPLACE INTO waiting (conversation) VALUES (?)", (conversation,))

    def _delete(self, conversations: Sequence[str]) -> None:
        with self._connection.batch():
            for conversation in conversations:
                self._saver.delete_thread(conversation)
                self._connection.execute("DELETE FROM waiting WHERE conversation = ?", (conversation,))

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def put_checkpoints(saver: BaseCheckpointSaver[Any], checkpoints: Iterable[CheckpointTuple]) -> None:
    """Copy checkpoints of another saver, with their pending writes."""
    for stored in checkpoints:
        parent = stored.parent_config["configurable"]["checkpoint_id"] if stored.parent_config else None
        config: RunnableConfig = {"configurable": {**stored.config["configurable"], "checkpoint_id": parent}}
        saver.put(config, stored.checkpoint, stored.metadata, stored.checkpoint["channel_versions"])
        for path, task_id, writes in pending_writes_by_task(stored):
            saver.put_writes(stored.config, writes, task_id, path)


def pending_writes_by_task(stored: CheckpointTuple) -> list[tuple[str, str, list[tuple[str, Any]]]]:
    """Path, id and writes of each task with pending writes."""
    by_task: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in stored.pending_writes or ():
        by_task.setdefault(task_id, []).append((channel, value))
    # Savers sort pending writes by task path, which a tuple does not have: numbers keep their order.
    return [(f"{number:06}", task_id, writes) for number, (task_id, writes) in enumerate(by_task.items())]


def _connect(path: Path) -> _BatchConnection:
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=_BatchConnection
    )
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection
