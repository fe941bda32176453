"""Socket Mode: the WebSocket connection from the bot to Slack, with reconnects."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import Final, Self

from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp

from ai_platform_engineering.compat.slack_sdk import set_address

CONNECT_SECONDS: Final = 10.0
PING_SECONDS: Final = 5.0


class SocketModeConnection:
    """A context manager: connected while it is entered. `ready` says whether Slack can reach the bot right now.

    The first connection uses `address`; without one, the client requests an address from Slack.
    """

    def __init__(
        self,
        app: AsyncApp,
        app_token: str,
        log: logging.Logger,
        ping_seconds: float = PING_SECONDS,
        address: str = "",
    ) -> None:
        self._handler = AsyncSocketModeHandler(app, app_token, logger=log, ping_interval=ping_seconds)
        set_address(self._handler.client, address or None)
        self._watch_seconds = ping_seconds
        self._tasks: list[asyncio.Task[None]] = []

    async def ready(self) -> bool:
        return await self._handler.client.is_connected()

    async def __aenter__(self) -> Self:
        connecting = asyncio.create_task(self._handler.connect_async())  # type: ignore[no-untyped-call]  # Bolt's
        self._tasks = [connecting, asyncio.create_task(self._drop_expired_address())]
        # After the timeout, the task keeps retrying in the background.
        await asyncio.wait({connecting}, timeout=CONNECT_SECONDS)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._handler.close_async()  # type: ignore[no-untyped-call]  # Bolt's

    async def _drop_expired_address(self) -> None:
        """An address is valid for one connection and a short time, but the client retries the same one. While it is
        disconnected, the address is removed, so the client requests a new one."""
        while True:
            await asyncio.sleep(self._watch_seconds)
            if not await self.ready():
                set_address(self._handler.client, None)
