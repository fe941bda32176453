"""Forwards stored feedback to Langfuse in the background, with retries, also after a restart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import httpx

from ai_platform_engineering.multi_agents.platform_engineer.feedback.langfuse import (
    Langfuse,
    RejectedError,
    UnavailableError,
)
from ai_platform_engineering.multi_agents.platform_engineer.feedback.store import FeedbackStore, FeedbackStoreError
from ai_platform_engineering.utils.outbound.policy import OPERATOR
from ai_platform_engineering.utils.outbound.transport import CheckedTransport

logger = logging.getLogger(__name__)

_BATCH: Final = 50
_TIMEOUT: Final = 10.0
_FIRST_BACKOFF: Final = 1.0
_MAX_BACKOFF: Final = 300.0
_BUSY_SECONDS: Final = 1.0
_ROUND_SECONDS: Final = 30.0


class FeedbackForwarder:
    """Forwards the feedback of one store to one Langfuse server. Call `wake` after storing feedback.

    A shared store is read every `round_seconds`, because a process may be killed before it has forwarded its feedback.
    """

    def __init__(
        self,
        store: FeedbackStore,
        langfuse: Langfuse,
        first_backoff: float = _FIRST_BACKOFF,
        round_seconds: float = _ROUND_SECONDS,
    ) -> None:
        self._store = store
        self._langfuse = langfuse
        self._first_backoff = first_backoff
        self._round_seconds = round_seconds if store.is_shared else None
        self._new_feedback = asyncio.Event()
        self._backoff = 0.0

    def wake(self) -> None:
        self._new_feedback.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        work = asyncio.create_task(self._run(), name="feedback-forwarding")
        try:
            yield
        finally:
            work.cancel()
            await asyncio.wait({work})

    async def _run(self) -> None:
        async with httpx.AsyncClient(transport=CheckedTransport(OPERATOR), timeout=_TIMEOUT) as http:
            while True:
                self._new_feedback.clear()
                try:
                    await self._forward(http)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self._round_seconds):
                            await self._new_feedback.wait()
                except UnavailableError as error:
                    self._back_off(
                        f"Langfuse at {self._langfuse.host} did not accept feedback ({error}). "
                        "It is stored and sent again later."
                    )
                    await asyncio.sleep(max(self._backoff, min(error.retry_after or 0.0, _MAX_BACKOFF)))
                except FeedbackStoreError as error:
                    self._back_off(str(error))
                    await asyncio.sleep(self._backoff)

    async def _forward(self, http: httpx.AsyncClient) -> None:
        """Send all pending feedback, when no other process is doing that."""
        while not await asyncio.to_thread(self._store.begin_forwarding):  # noqa: ASYNC110 - another process ends it
            await asyncio.sleep(_BUSY_SECONDS)
        try:
            while await self._send_pending(http):
                pass
        finally:
            await asyncio.to_thread(self._store.end_forwarding)

    async def _send_pending(self, http: httpx.AsyncClient) -> int:
        """Send one batch of pending feedback and return its size."""
        pending = await asyncio.to_thread(self._store.pending, _BATCH)
        for feedback in pending:
            try:
                await self._langfuse.send(http, feedback)
            except RejectedError as error:
                logger.warning(
                    "Langfuse rejected the feedback %s (%s). It stays stored and is not sent again.",
                    feedback.id,
                    error,
                )
                await asyncio.to_thread(self._store.mark_done, feedback, "refused")
            else:
                await asyncio.to_thread(self._store.mark_done, feedback, "forwarded")
            if self._backoff:
                logger.info("Langfuse accepts feedback again.")
            self._backoff = 0.0
        return len(pending)

    def _back_off(self, problem: str) -> None:
        """Increase the backoff, and log the first problem of a series."""
        if not self._backoff:
            logger.warning("%s", problem)
        self._backoff = min(_MAX_BACKOFF, 2 * self._backoff) if self._backoff else self._first_backoff
