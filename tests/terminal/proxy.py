"""A proxy that cuts connections, as a train in a tunnel does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass
class Tunnel:
    """Passes bytes on until `cut` says, of what the server sent on this connection so far, that it is enough."""

    url: str = ""
    cut: Callable[[bytes], bool] = lambda sent: False
    refuse: bool = False
    cuts: int = 0
    was_cut: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def tunnel_to(url: str) -> AsyncIterator[Tunnel]:
    target = urlsplit(url)
    tunnel = Tunnel()
    open_tasks: set[asyncio.Task[None]] = set()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_tasks.add(task)
        try:
            if tunnel.refuse:
                writer.transport.abort()
                return
            upstream_reader, upstream = await asyncio.open_connection(target.hostname, target.port)
            there = asyncio.create_task(_requests(reader, upstream, tunnel))
            try:
                await _answers(upstream_reader, writer, tunnel)
            finally:
                there.cancel()
                upstream.transport.abort()
                writer.transport.abort()
        finally:
            open_tasks.discard(task)

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    tunnel.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield tunnel
    finally:
        server.close()
        for task in list(open_tasks):
            task.cancel()
        await asyncio.gather(*open_tasks, return_exceptions=True)


async def _requests(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tunnel: Tunnel) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            tunnel.requests.append(data)
            writer.write(data)
            await writer.drain()


async def _answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, tunnel: Tunnel) -> None:
    sent = b""
    with suppress(OSError):
        while data := await reader.read(256):
            sent += data
            if tunnel.cut(sent):
                tunnel.cuts += 1
                tunnel.was_cut.set()
                return
            writer.write(data)
            await writer.drain()
