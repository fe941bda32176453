"""Socket Mode: the connection that the bot makes to Slack, and makes again when it is lost."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Final, Self

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp

CONNECT_SECONDS: Final = 10.0
PING_SECONDS: Final = 5.0


class Connection:
    """Open while it is entered. `ready` says whether Slack can reach the bot right now. Without an `address` to begin
    with, Slack is asked for one."""

    def __init__(
        self,
        app: AsyncApp,
        app_token: str,
        log: logging.Logger,
        ping_seconds: float = PING_SECONDS,
        address: str = "",
    ) -> None:
        self._handler = AsyncSocketModeHandler(app, app_token, logger=log, ping_interval=ping_seconds)
        self._handler.client.wss_uri = address or None
        self._watch_seconds = ping_seconds
        self._tasks: list[asyncio.Task[None]] = []

    async def ready(self) -> bool:
        return await self._handler.client.is_connected()

    async def __aenter__(self) -> Self:
        connecting = asyncio.create_task(self._handler.connect_async())  # type: ignore[no-untyped-call]  # Bolt's
        self._tasks = [connecting, asyncio.create_task(self._watch())]
        # It goes on trying until it is connected.
        await asyncio.wait({connecting}, timeout=CONNECT_SECONDS)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._handler.close_async()  # type: ignore[no-untyped-call]  # Bolt's

    async def _watch(self) -> None:
        """An address that Slack gave out is good for one connection, and for a short time; the library goes on trying
        the same one. Without an address it asks for a new one."""
        while True:
            await asyncio.sleep(self._watch_seconds)
            if not await self.ready():
                self._handler.client.wss_uri = None
