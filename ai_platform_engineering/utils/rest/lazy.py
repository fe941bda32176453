"""An ASGI app that is imported and built when its first request comes: most processes never get one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send


class LazyApp:
    """`build` runs once, on a thread, and holds the imports that are to wait until then."""

    def __init__(self, build: Callable[[], ASGIApp]) -> None:
        self._build = build
        self._building = asyncio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            async with self._building:
                if self._app is None:
                    self._app = await asyncio.to_thread(self._build)
        await self._app(scope, receive, send)
