"""The private part of httpx that `compat/httpx_backend.py` uses: the backend of a transport opens its connections."""

from __future__ import annotations

import httpcore
import httpx

from ai_platform_engineering.compat.httpx_backend import connect_blocking_with, connect_with

ANSWER = [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", b"ok"]


class Recording(httpcore.AsyncMockBackend):
    def __init__(self) -> None:
        super().__init__(ANSWER)
        self.opened: list[tuple[str, int]] = []

    async def connect_tcp(self, host: str, port: int, *args: object, **options: object) -> httpcore.AsyncNetworkStream:
        self.opened.append((host, port))
        return await super().connect_tcp(host, port)


class BlockingRecording(httpcore.MockBackend):
    def __init__(self) -> None:
        super().__init__(ANSWER)
        self.opened: list[tuple[str, int]] = []

    def connect_tcp(self, host: str, port: int, *args: object, **options: object) -> httpcore.NetworkStream:
        self.opened.append((host, port))
        return super().connect_tcp(host, port)


async def test_connections_are_opened_by_the_backend() -> None:
    backend, transport = Recording(), httpx.AsyncHTTPTransport(verify=False)
    connect_with(transport, backend)
    async with httpx.AsyncClient(transport=transport) as client:
        assert (await client.get("http://site.test/")).text == "ok"
    assert backend.opened == [("site.test", 80)]


def test_connections_that_block_are_opened_by_the_backend() -> None:
    backend, transport = BlockingRecording(), httpx.HTTPTransport(verify=False)
    connect_blocking_with(transport, backend)
    with httpx.Client(transport=transport) as client:
        assert client.get("http://site.test:81/").text == "ok"
    assert backend.opened == [("site.test", 81)]
