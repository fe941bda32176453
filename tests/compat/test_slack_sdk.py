"""The contract of `compat/slack_sdk.py`: a Socket Mode client connects to the address in its attribute `wss_uri`."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from slack_sdk.socket_mode.aiohttp import SocketModeClient

from ai_platform_engineering.compat.slack_sdk import set_address

ADAPT = "adapt ai_platform_engineering/compat/slack_sdk.py"


class Client(SocketModeClient):
    """Requests its address from this test in place of Slack."""

    issued = ""

    async def issue_new_wss_url(self) -> str:
        return self.issued


class Server:
    def __init__(self) -> None:
        self.url = ""
        self.paths: list[str] = []

    async def accept(self, request: web.Request) -> web.WebSocketResponse:
        self.paths.append(request.path)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for _ in socket:
            pass
        return socket


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server, app = Server(), web.Application()
    app.router.add_get("/{path}", server.accept)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        server.url = f"ws://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        await runner.cleanup()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Client]:
    client = Client(app_token="xapp-1")
    client.issued = f"{server.url}/issued"
    try:
        yield client
    finally:
        await client.close()


async def test_a_client_connects_to_the_address_that_was_set(server: Server, client: Client) -> None:
    set_address(client, f"{server.url}/set")
    await client.connect()
    assert server.paths == ["/set"], f"slack_sdk does not connect to the address in wss_uri any more: {ADAPT}"


async def test_a_client_without_an_address_requests_one(server: Server, client: Client) -> None:
    set_address(client, f"{server.url}/expired")
    set_address(client, None)
    await client.connect()
    assert server.paths == ["/issued"], f"slack_sdk does not request an address where wss_uri is None: {ADAPT}"


async def test_a_client_without_the_attribute_is_reported(client: Client) -> None:
    del client.wss_uri
    with pytest.raises(AttributeError, match=r"no longer has the attribute wss_uri.*compat/slack_sdk\.py"):
        set_address(client, None)
