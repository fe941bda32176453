"""Memories in one of LangGraph's stores: in memory, in a SQLite file, in Postgres.

Operations go to `abatch` directly. The other asynchronous methods of LangGraph's stores join the operations of all
callers into batches, and a failed operation fails the whole batch.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from langgraph.store.base import BaseStore, Op, PutOp, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

from ai_platform_engineering.storage.conversation_formats import FileFormat, check_format, write_format
from ai_platform_engineering.storage.memories.memory import MAX_MEMORIES, Memory, to_ms
from ai_platform_engineering.storage.servers.errors import StoreError
from ai_platform_engineering.storage.sqlite.owned_file import reason
from ai_platform_engineering.storage.sqlite.shared_file import write_ahead
from ai_platform_engineering.utils.private_files import create_private_file

FILE_FORMAT: Final = FileFormat(1, frozenset(), "memories", "LANGGRAPH_STORE_TYPE=memory")

_NAMESPACE: Final = "memories"
# More than the maximum of one owner: two processes may add memories at the same moment.
_PAGE: Final = 2 * MAX_MEMORIES
_BUSY_SECONDS: Final = 10.0
_CHECK: Final = SearchOp((_NAMESPACE, "ping"), limit=1)


class LangGraphStore:
    """`errors` are the exceptions of the driver, which `store_error` translates."""

    def __init__(
        self,
        store: BaseStore,
        errors: tuple[type[Exception], ...] = (),
        store_error: Callable[[Exception], StoreError] = lambda error: StoreError(reason(error)),
    ) -> None:
        self._store = store
        self._errors = errors
        self._store_error = store_error

    async def ping(self) -> None:
        await self._batch([_CHECK])

    async def read(self, owner: str) -> Sequence[Memory]:
        found = await self._search(SearchOp((_NAMESPACE, owner), limit=_PAGE))
        return [*filter(None, (Memory.read(item.key, item.value) for item in found))]

    async def put(self, owner: str, memory: Memory) -> None:
        await self._batch([PutOp((_NAMESPACE, owner), memory.id, memory.value(), index=False)])

    async def delete(self, owner: str, ids: Collection[str]) -> None:
        await self._batch(PutOp((_NAMESPACE, owner), memory_id, None) for memory_id in ids)

    async def delete_older(self, created_before: datetime) -> None:
        # Postgres compares the texts of both numbers, which have the same length.
        older = SearchOp((_NAMESPACE,), filter={"created": {"$lt": to_ms(created_before)}}, limit=_PAGE)
        while found := await self._search(older):
            await self._batch(PutOp(item.namespace, item.key, None) for item in found)

    async def _search(self, operation: SearchOp) -> list[SearchItem]:
        [found] = await self._batch([operation])
        return list(found)

    async def _batch(self, operations: Iterable[Op]) -> list[Any]:
        try:
            return await self._store.abatch([*operations])
        except self._errors as error:
            raise self._store_error(error) from None


@asynccontextmanager
async def memory_opened() -> AsyncIterator[LangGraphStore]:
    yield LangGraphStore(InMemoryStore())


@asynccontextmanager
async def sqlite_opened(path: Path) -> AsyncIterator[LangGraphStore]:
    """A file that only this user can read. Raises `SettingsError` if it is no file of memories."""
    from langgraph.store.sqlite.aio import AsyncSqliteStore  # noqa: PLC0415 - a vector library is loaded with it

    errors = (sqlite3.Error, OSError)
    async with AsyncExitStack() as stack:
        try:
            await asyncio.to_thread(_prepare_file, path)
            store = await stack.enter_async_context(AsyncSqliteStore.from_conn_string(str(path)))
            await store.conn.execute(f"PRAGMA busy_timeout = {_BUSY_SECONDS * 1000:.0f}")
            await store.conn.execute("PRAGMA synchronous = NORMAL")
            await store.setup()
        except errors as error:
            raise StoreError(reason(error), "Check the file, or choose another directory with DATA_DIR.") from None
        yield LangGraphStore(store, errors)


def _prepare_file(path: Path) -> None:
    create_private_file(path)
    with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as connection:
        version = check_format(connection, path, FILE_FORMAT)
        write_ahead(connection, _BUSY_SECONDS)
        if version != FILE_FORMAT.version:
            write_format(connection, FILE_FORMAT)
