"""A TCP proxy in the event loop of the test, which gives each connection to the next of its servers in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

_CHUNK = 64 * 1024


@dataclass
class RoundRobin:
    """`ports` are those of the servers. One that refuses a connection is skipped, as a load balancer does."""

    ports: list[int]
    url: str = ""
    _next: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pass_on(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = await self._connected()
        if server is not None:
            there, back = server
            ways = [asyncio.create_task(_copy(reader, back)), asyncio.create_task(_copy(there, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
                back.close()
        writer.close()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for _ in self.ports:
            self._next += 1
            with suppress(ConnectionError):
                return await asyncio.open_connection("127.0.0.1", self.ports[self._next % len(self.ports)])
        return None


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while content := await reader.read(_CHUNK):
            writer.write(content)
            await writer.drain()


@asynccontextmanager
async def round_robin(ports: list[int]) -> AsyncIterator[RoundRobin]:
    proxy = RoundRobin(ports)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.aclose()
