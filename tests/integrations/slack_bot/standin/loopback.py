"""An app on a port of this machine, in this event loop, whose connections can be broken.

uvicorn's own server looks ten times a second whether it should end; this one starts and ends at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from ai_platform_engineering.utils.serving import KEEP_ALIVE_SECONDS, listen

Peer = tuple[str, int]


@dataclass(slots=True)
class Loopback:
    url: str
    _transports: dict[Peer, asyncio.Transport] = field(default_factory=dict)

    def break_connection(self, peer: Peer) -> None:
        self._transports[peer].abort()

    def break_all(self) -> None:
        for transport in list(self._transports.values()):
            transport.abort()


@asynccontextmanager
async def on_loopback(app: ASGIApp) -> AsyncIterator[Loopback]:
    listener = listen("127.0.0.1", 0)
    loopback = Loopback(f"http://127.0.0.1:{listener.getsockname()[1]}")
    transports = loopback._transports
    config = uvicorn.Config(
        app,
        ws="websockets-sansio",
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
    )
    config.load()
    state = ServerState()

    class Remembering(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if self.client:
                transports[self.client] = transport

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            if self.client:
                transports.pop(self.client, None)

    server = await asyncio.get_running_loop().create_server(lambda: Remembering(config, state, {}), sock=listener)
    try:
        yield loopback
    finally:
        server.close()
        loopback.break_all()
        # What is still being answered has lost its connection, and ends.
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=5)
