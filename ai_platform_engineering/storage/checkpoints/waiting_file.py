"""The file in which an agent's server keeps conversations that wait for a person, each as one piece."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from ai_platform_engineering.storage.data_files import ConversationsFileError
from ai_platform_engineering.utils.private_files import create_private_file

T = TypeVar("T")

_BUSY_SECONDS: Final = 10.0


class WaitingFile:
    """Open until it is closed. Used on the event loop; all but the quick look at who waits is done in a thread."""

    def __init__(self, path: Path) -> None:
        try:
            create_private_file(path)
            self._connection = _connected(path)
            self._index = _connected(path)
        except (sqlite3.Error, OSError) as error:
            raise ConversationsFileError(path, error) from error
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="waiting-conversations")

    def close(self) -> None:
        self._thread.shutdown()
        self._index.close()
        self._connection.close()

    def has(self, conversation: str) -> bool:
        """Asked at the start of every run: a trip to the thread would cost fifty times as much as the look itself,
        which waits for nobody."""
        found = self._index.execute("SELECT 1 FROM waiting WHERE conversation = ?", (conversation,)).fetchone()
        return found is not None

    async def read(self, conversation: str) -> bytes | None:
        row = await self._run(
            lambda connection: connection.execute(
                "SELECT body FROM waiting WHERE conversation = ?", (conversation,)
            ).fetchone()
        )
        return None if row is None else bytes(row[0])

    async def write(self, conversation: str, body: bytes) -> None:
        await self._run(
            lambda connection: connection.execute(
                "INSERT OR REPLACE INTO waiting (conversation, body) VALUES (?, ?)", (conversation, body)
            )
        )

    async def drop(self, conversations: Iterable[str]) -> None:
        rows = [(conversation,) for conversation in conversations]
        await self._run(lambda connection: connection.executemany("DELETE FROM waiting WHERE conversation = ?", rows))

    async def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self._connection)


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("CREATE TABLE IF NOT EXISTS waiting (conversation TEXT PRIMARY KEY, body BLOB NOT NULL)")
    except BaseException:
        connection.close()
        raise
    return connection
