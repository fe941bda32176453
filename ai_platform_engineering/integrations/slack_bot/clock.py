"""The bot's clock. Times are stored across restarts, so they are wall-clock times."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Wait that long."""


class SystemClock:
    """Wall-clock time at creation plus monotonic time, so that a change of the system clock has no effect."""

    def __init__(self) -> None:
        self._begin = time.time() - time.monotonic()

    def now(self) -> float:
        return self._begin + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
