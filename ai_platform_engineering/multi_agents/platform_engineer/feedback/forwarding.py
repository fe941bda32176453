"""Sends kept feedback on, in the background, again and again until it is taken, also after a restart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx

from ai_platform_engineering.multi_agents.platform_engineer.feedback.file import FeedbackFile, FeedbackFileError
from ai_platform_engineering.multi_agents.platform_engineer.feedback.langfuse import (
    Langfuse,
    NotTakenError,
    RefusedError,
)

logger = logging.getLogger(__name__)

_BATCH: Final = 50
_SECONDS: Final = 10.0
_FIRST_PAUSE: Final = 1.0
_MAX_PAUSE: Final = 300.0


class Forwarding:
    """One for a file and a Langfuse. `wake` it when there is something new."""

    def __init__(self, file: FeedbackFile, langfuse: Langfuse, first_pause: float = _FIRST_PAUSE) -> None:
        self._file = file
        self._langfuse = langfuse
        self._first_pause = first_pause
        self._something = asyncio.Event()
        self._pause = 0.0

    def wake(self) -> None:
        self._something.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        work = asyncio.create_task(self._run(), name="feedback-forwarding")
        try:
            yield
        finally:
            work.cancel()
            await asyncio.wait({work})

    async def _run(self) -> None:
        async with httpx.AsyncClient(timeout=_SECONDS) as http:
            while True:
                self._something.clear()
                try:
                    if not await self._send_waiting(http):
                        await self._something.wait()
                except NotTakenError as error:
                    self._complain(
                        f"Langfuse at {self._langfuse.host} takes no feedback ({error}). It is kept and sent on later."
                    )
                    await asyncio.sleep(max(self._pause, min(error.seconds or 0.0, _MAX_PAUSE)))
                except FeedbackFileError as error:
                    self._complain(str(error))
                    await asyncio.sleep(self._pause)

    async def _send_waiting(self, http: httpx.AsyncClient) -> int:
        """How many were waiting."""
        waiting = await asyncio.to_thread(self._file.waiting, _BATCH)
        for feedback in waiting:
            try:
                await self._langfuse.send(http, feedback)
            except RefusedError as error:
                logger.warning("Langfuse refused the feedback %s for good (%s); it is kept here.", feedback.id, error)
                await asyncio.to_thread(self._file.settle, feedback, "refused")
            else:
                await asyncio.to_thread(self._file.settle, feedback, "forwarded")
            if self._pause:
                logger.info("Langfuse takes feedback again.")
            self._pause = 0.0
        return len(waiting)

    def _complain(self, sentence: str) -> None:
        """Once, however long it lasts."""
        if not self._pause:
            logger.warning("%s", sentence)
        self._pause = min(_MAX_PAUSE, 2 * self._pause) if self._pause else self._first_pause
