"""The time, as the bot tells it. What it has not delivered outlives the process, so it is the time of day."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Wait so long."""


class SystemClock:
    """The time of day when it was made, and from then on without jumps: a clock that is set back stops nothing."""

    def __init__(self) -> None:
        self._begin = time.time() - time.monotonic()

    def now(self) -> float:
        return self._begin + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
