"""The state of a log file: whether tasks can be stored in it, and why not."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Any, Final

from ai_platform_engineering.storage.event_log.file import FORMAT, unusable
from ai_platform_engineering.storage.event_log.log_errors import LogReadError
from ai_platform_engineering.storage.event_log.reader import ReaderThreads
from ai_platform_engineering.storage.event_log.writer import LogWriter, Write
from ai_platform_engineering.storage.sqlite.damage import check_pages, is_checked_at_start, is_damage, is_file_error

logger = logging.getLogger(__name__)

_RETRY_SECONDS: Final = 2.0
_NO_TASK: Final = 0
_DAMAGED: Final = "the file is damaged, see the log of the server"


class FileProblem:
    """While there is one, an empty commit is tried every two seconds: without requests, nothing else would notice that
    the disk has room again. Damage stays until a restart with another file."""

    def __init__(self, path: Path, writer: LogWriter) -> None:
        self._path = path
        self._writer = writer
        self._reason: str | None = None
        self._damage: str | None = None
        self._retry: asyncio.TimerHandle | None = None

    @property
    def text(self) -> str | None:
        """A sentence without paths; None if tasks can be stored."""
        reason = self._damage or self._reason
        return reason and f"Tasks cannot be stored: {reason}."

    async def check_large(self, readers: ReaderThreads) -> None:
        """Check a file that was too large to be checked before the start."""
        if is_checked_at_start(self._path):
            return
        try:
            await readers.run(check_pages)
        except LogReadError:
            self._damage = _DAMAGED

    def note(self, error: Exception) -> None:
        """Note an error of a write or a read. One that is not about the file is ignored."""
        if not is_file_error(error):
            return
        if self._reason is None:
            logger.error("%s", unusable(self._path, error))
        self._reason = str(error)
        if is_damage(error):
            self._damage = _DAMAGED
        if self._retry is None:
            self._retry = asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._try)

    def clear(self) -> None:
        """Tasks can be stored."""
        if self._reason is not None:
            self._reason = None
            self.close()
            logger.warning("%s can be used again as the event log", self._path)

    def close(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    def _try(self) -> None:
        self._retry = None
        self._writer.submit(Write(_NO_TASK, _write_nothing, lambda _: self.clear(), self.note))


def _write_nothing(connection: sqlite3.Connection) -> Any:
    return connection.execute(f"PRAGMA user_version = {FORMAT}")
