from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
import pytest

from ai_platform_engineering.utils.outbound.addresses import Address
from ai_platform_engineering.utils.outbound.policy import OPERATOR, OutboundPolicy, RefusedError
from ai_platform_engineering.utils.outbound.transport import CheckedTransport, blocking_transport

ANYWHERE = OutboundPolicy(variables="TEST", allow_private=True)


@dataclass
class Names:
    """A DNS whose answers change: each question gets the next answer, and the last one from then on."""

    answers: list[list[str]]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, name: str) -> Sequence[Address]:
        self.asked.append(name)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [ipaddress.ip_address(address) for address in answer]


@dataclass
class Site:
    port: int = 0
    heads: list[str] = field(default_factory=list)


@asynccontextmanager
async def site(host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Site]:
    """A server that answers every request with `ok` and keeps its connections open."""
    running, writers = Site(), []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while True:
                running.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    server = await asyncio.start_server(handle, host, port)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()


def client(policy: OutboundPolicy, names: Names) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=CheckedTransport(policy, names))


async def test_a_name_is_resolved_once_per_connection_and_stays_in_the_host_header() -> None:
    names = Names([["127.0.0.1"], ["169.254.169.254"]])
    async with site() as running, client(ANYWHERE, names) as http:
        for _ in range(2):
            assert (await http.get(f"http://site.test:{running.port}/")).text == "ok"
        assert names.asked == ["site.test"]
        assert f"host: site.test:{running.port}" in running.heads[0].lower()
    async with client(ANYWHERE, names) as http:
        with pytest.raises(RefusedError, match=r"site\.test \(169\.254\.169\.254\) was not contacted"):
            await http.get(f"http://site.test:{running.port}/")


def silent(port: int) -> list[socket.socket]:
    """A listener at 127.0.0.2 that answers no connections, because its queue is full."""
    opened = [socket.socket() for _ in range(5)]
    opened[0].bind(("127.0.0.2", port))
    opened[0].listen(0)
    for filling in opened[1:]:
        filling.setblocking(False)
        filling.connect_ex(("127.0.0.2", port))
    return opened


async def test_an_address_that_refuses_or_does_not_answer_does_not_hold_up_the_next(unused_port: int) -> None:
    async with site() as running, client(ANYWHERE, Names([["127.0.0.2", "127.0.0.3", "127.0.0.1"]])) as http:
        queue = silent(running.port)
        try:
            assert (await http.get(f"http://site.test:{running.port}/", timeout=60)).text == "ok"
        finally:
            for each in queue:
                each.close()
    async with client(ANYWHERE, Names([["127.0.0.3", "127.0.0.4"]])) as http:
        with pytest.raises(httpx.ConnectError):
            await http.get(f"http://site.test:{unused_port}/")


async def test_looking_up_a_name_takes_no_longer_than_connecting_may() -> None:
    async def never(name: str) -> Sequence[Address]:
        await asyncio.Event().wait()
        return []

    async with httpx.AsyncClient(transport=CheckedTransport(ANYWHERE, never), timeout=0.05) as http:
        with pytest.raises(httpx.ConnectTimeout):
            await http.get("http://site.test/")


class TestProxies:
    """Of the environment: for addresses that the operator has configured, never for those that users choose."""

    @pytest.fixture(autouse=True)
    async def proxy(self, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
        async with site() as running:
            for variable in ("HTTP_PROXY", "http_proxy"):
                monkeypatch.setenv(variable, f"http://127.0.0.1:{running.port}")
            monkeypatch.setenv("NO_PROXY", "direct.test")
            monkeypatch.setenv("no_proxy", "direct.test")
            yield running

    async def test_configured_addresses_go_through_it(self, proxy: Site) -> None:
        names = Names([["127.0.0.1"]])
        async with client(OPERATOR, names) as http:
            assert (await http.get("http://agent.test:8000/card")).text == "ok"
            assert proxy.heads[0].startswith("GET http://agent.test:8000/card ")
            assert names.asked == []
            async with site() as direct:
                await http.get(f"http://direct.test:{direct.port}/card")
                assert direct.heads[0].startswith("GET /card ")
            for refused in ("169.254.169.254", "2852039166", "metadata.google.internal"):
                with pytest.raises(RefusedError, match="metadata service"):
                    await http.get(f"http://{refused}/")
        assert len(proxy.heads) == 1

    async def test_others_do_not(self, proxy: Site) -> None:
        async with site() as running, client(ANYWHERE, Names([["127.0.0.1"]])) as http:
            await http.get(f"http://site.test:{running.port}/")
            assert len(running.heads) == 1
        assert proxy.heads == []


async def test_clients_that_block_are_checked_too() -> None:
    def get(url: str) -> str:
        with httpx.Client(transport=blocking_transport(OPERATOR, url)) as http:
            return http.get(url).text

    async with site() as running:
        assert await asyncio.to_thread(get, f"http://localhost:{running.port}/") == "ok"
    with pytest.raises(RefusedError, match="metadata service"):
        get("http://[::ffff:169.254.169.254]/")
    with pytest.raises(RefusedError, match="has no address"):
        await asyncio.to_thread(get, "http://nothing.invalid/")
