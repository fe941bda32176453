"""A clock that a test moves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from heapq import heappop, heappush
from itertools import count

START = 1_700_000_000.0
QUIET_TURNS = 60
"""Turns of the event loop without anything to do, after which nothing is expected any more. What goes through sockets
of this process needs far fewer."""


class VirtualClock:
    """Time stands still until it is moved. `busy` says whether something is under way that time must wait for."""

    def __init__(self, start: float = START, busy: Callable[[], bool] = lambda: False) -> None:
        self._now = start
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()
        self.busy = busy

    def now(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        wakened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self._now + seconds, next(self._numbers), wakened))
        await wakened

    async def advance(self, seconds: float) -> None:
        """So much time passes; everybody who sleeps wakes in turn, and does what is to be done then."""
        end = self._now + seconds
        await self.settle()
        while (at := self._next()) is not None and at <= end:
            await self._wake(at)
        self._now = end
        await self.settle()

    @asynccontextmanager
    async def passing(self) -> AsyncIterator[None]:
        """Time jumps to the next wake-up whenever all tasks are idle."""
        task = asyncio.create_task(self._pass())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def settle(self) -> None:
        """Wait until all tasks are idle before time passes."""
        quiet = 0
        while quiet < QUIET_TURNS:
            await asyncio.sleep(0.001 if self.busy() else 0)
            quiet = 0 if self.busy() else quiet + 1

    async def _pass(self) -> None:
        while True:
            await self.settle()
            if (at := self._next()) is not None:
                await self._wake(at)
            else:
                await asyncio.sleep(0.001)

    async def _wake(self, at: float) -> None:
        self._now = max(self._now, at)
        while self._sleepers and self._sleepers[0][0] <= self._now:
            sleeper = heappop(self._sleepers)[2]
            if not sleeper.done():
                sleeper.set_result(None)
        await self.settle()

    def _next(self) -> float | None:
        while self._sleepers and self._sleepers[0][2].done():
            heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None
