"""Pace: how soon after one request to a host the next may follow."""

from __future__ import annotations

import asyncio
from time import monotonic


class Pace:
    """Whoever asks is given the next free moment of a host, so many may ask at once."""

    def __init__(self, per_second: float) -> None:
        self._seconds = 1 / per_second
        self._free: dict[str, float] = {}

    async def turn(self, host: str, delay: float = 0.0) -> None:
        """Waits for the next moment; `delay` is what the host itself asks for between two requests."""
        now = monotonic()
        mine = max(now, self._free.get(host, 0.0))
        self._free[host] = mine + max(self._seconds, delay)
        if mine > now:
            await asyncio.sleep(mine - now)

    def pause(self, host: str, seconds: float) -> None:
        """Nothing more is asked of the host for so long."""
        self._free[host] = max(self._free.get(host, 0.0), monotonic() + seconds)
