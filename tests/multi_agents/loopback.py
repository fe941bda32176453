"""Small HTTP servers on loopback ports, each with one kind of behaviour."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

# A path, and the headers in lower case.
Request = tuple[str, dict[str, str]]
Answer = Callable[[Request], Awaitable[bytes]]


def response(status: int, body: bytes | dict[str, Any], headers: str = "") -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Status\r\ncontent-length: {len(content)}\r\nconnection: close\r\n{headers}\r\n"
    return head.encode() + content


@dataclass
class Loopback:
    address: str
    requests: list[Request] = field(default_factory=list)


@asynccontextmanager
async def serving(answer: Answer, port: int = 0) -> AsyncIterator[Loopback]:
    loopback = Loopback("")

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            first, *lines = (await reader.read(65536)).decode(errors="replace").split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in lines if ": " in line)
            request = first.removeprefix("GET ").removesuffix(" HTTP/1.1"), headers
            loopback.requests.append(request)
            writer.write(await answer(request))
            await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", port)
    loopback.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield loopback
    finally:
        server.close()
        await server.wait_closed()


def always(data: bytes) -> Answer:
    async def answer(_: Request) -> bytes:
        return data

    return answer


def card(description: str = "Weather for any place.") -> dict[str, Any]:
    return {
        "name": "Weather",
        "description": description,
        "url": "http://weather.test",
        "version": "1",
        "protocolVersion": "0.3.0",
        "skills": [{"id": "forecast", "name": "Forecast", "description": "Tomorrow.", "tags": []}],
    }
