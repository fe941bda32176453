"""The state of the database: whether the log can use it, and why not."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

import psycopg

from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress

logger = logging.getLogger(__name__)


class LogProblem:
    """Shared by the parts of a log that use its database."""

    def __init__(self, address: LogAddress) -> None:
        self._address = address
        self._reason: str | None = None
        self._is_over = asyncio.Event()
        self._is_over.set()

    @property
    def text(self) -> str | None:
        """A sentence without addresses; None if the database can be used."""
        return self._reason and f"Tasks cannot be stored, because Postgres cannot be used: {self._reason}."

    def note(self, error: Exception) -> None:
        reason = self._address.reason(error) if isinstance(error, psycopg.Error) else str(error) or "it does not answer"
        if self._reason is None:
            logger.warning("%s cannot be used as the event log: %s", self._address, reason)
        self._reason = reason
        self._is_over.clear()

    async def is_over(self, seconds: float) -> bool:
        """Wait so long for the database."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_over.wait()
        return self._is_over.is_set()

    def clear(self) -> None:
        if self._reason is not None:
            self._reason = None
            self._is_over.set()
            logger.warning("%s can be used again as the event log", self._address)
