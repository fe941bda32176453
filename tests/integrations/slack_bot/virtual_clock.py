"""A clock that stands still until a task sleeps by it, or a test moves it."""

from __future__ import annotations

import asyncio


class VirtualClock:
    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        self._now += seconds

    async def sleep(self, seconds: float) -> None:
        """Over at once, but others get their turn."""
        self.advance(seconds)
        await asyncio.sleep(0)
