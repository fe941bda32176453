"""A real server on a loopback port around a scripted executor, and clients of every kind for it."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import uvicorn
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import AgentCard, AgentSkill, Message, Role, SendMessageRequest
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from ai_platform_engineering.events import SUPERVISOR
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.server.a2a_server import (
    a2a_routes,
    agent_card,
    health_routes,
    request_handler,
)
from ai_platform_engineering.utils.a2a_common.server.auth import auth_middleware, security_schemes
from ai_platform_engineering.utils.a2a_common.server.request_handler import LogRequestHandler
from ai_platform_engineering.utils.outbound.addresses import Resolve, resolve
from ai_platform_engineering.utils.serving import KEEP_ALIVE_SECONDS, listen
from tests.event_loops import abort_connections
from tests.utils.a2a_common.scripted_executor import ANSWER, Script, ScriptedExecutor

TRANSPORTS = [("0.3", "JSONRPC"), ("0.3", "HTTP+JSON"), ("1.0", "JSONRPC"), ("1.0", "HTTP+JSON")]


@dataclass
class Served:
    url: str
    log: MemoryEventLog
    executor: ScriptedExecutor
    handler: LogRequestHandler
    card: AgentCard
    http: httpx.AsyncClient
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a stream has brought an event."""
    server: LoopbackServer | None = None

    @asynccontextmanager
    async def interrupted(self) -> AsyncIterator[None]:
        """Nothing listens meanwhile, and all connections are cut. Runs continue."""
        assert self.server is not None
        self.server.close()
        await self.server.stop()
        yield
        await self.server.start(listen("127.0.0.1", int(self.url.rpartition(":")[2])))

    async def cut(self) -> None:
        """Cut all connections. New ones are accepted."""
        assert self.server is not None
        await self.server.stop()

    def client(self, version: str, binding: str) -> Client:
        """The SDK's own client, made to speak one version over one binding."""
        card = AgentCard()
        card.CopyFrom(self.card)
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(
            interface
            for interface in self.card.supported_interfaces
            if (interface.protocol_version, interface.protocol_binding) == (version, binding)
        )
        config = ClientConfig(httpx_client=self.http, supported_protocol_bindings=[binding])
        return ClientFactory(config).create(card)

    async def rpc(self, method: str, params: Any, **headers: str) -> dict[str, Any]:
        """One JSON-RPC call that answers with one object."""
        body = {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}
        answer = (await self.http.post(self.url, json=body, headers=_names(headers))).json()
        assert answer["id"] == "r1"
        return answer

    @asynccontextmanager
    async def events(self, method: str, params: Any, **headers: str) -> AsyncIterator[AsyncIterator[tuple[int, Any]]]:
        """One JSON-RPC call that answers with a stream: numbers and results."""
        body = {"jsonrpc": "2.0", "id": "r1", "method": method, "params": params}
        async with self.http.stream("POST", self.url, json=body, headers=_names(headers)) as response:
            assert response.headers["content-type"].startswith("text/event-stream"), await response.aread()
            yield self._numbered(response, lambda data: data["result"])

    async def all_events(self, method: str, params: Any, **headers: str) -> list[tuple[int, Any]]:
        async with self.events(method, params, **headers) as events:
            return [event async for event in events]

    async def rest_events(self, verb: str, path: str, body: Any = None, **headers: str) -> list[tuple[int, Any]]:
        async with self.http.stream(verb, self.url + path, json=body, headers=_names(headers)) as response:
            assert response.headers["content-type"].startswith("text/event-stream"), await response.aread()
            return [event async for event in self._numbered(response, lambda data: data)]

    async def _numbered(self, response: httpx.Response, result: Callable[[Any], Any]) -> AsyncIterator[tuple[int, Any]]:
        number = None
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                number = int(value)
            elif name == "data":
                assert number is not None, f"an event without an id: {value}"
                self.heard.set()
                yield number, result(json.loads(value))
                number = None


_NUMBERS = itertools.count(1)


def new_id() -> str:
    """Not random: parameters of tests contain it, and every worker must collect the same tests."""
    return f"m-{next(_NUMBERS)}"


def message_0_3(text: str, **fields: Any) -> dict[str, Any]:
    return {"message": {"role": "user", "messageId": new_id(), "parts": [{"kind": "text", "text": text}], **fields}}


def message_1_0(text: str, **fields: Any) -> dict[str, Any]:
    return {"message": {"role": "ROLE_USER", "messageId": new_id(), "parts": [{"text": text}], **fields}}


def request(text: str, **fields: Any) -> SendMessageRequest:
    message = Message(message_id=fields.pop("message_id", new_id()), role=Role.ROLE_USER, **fields)
    message.parts.add().text = text
    return SendMessageRequest(message=message)


async def until(condition: Callable[[], object], seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - what is waited for is inside the product and the SDK
            await asyncio.sleep(0.005)


@asynccontextmanager
async def serving(
    script: Callable[[str, int], Script] = lambda text, turn: ANSWER,
    extra_routes: tuple[BaseRoute, ...] = (),
    agent: str = SUPERVISOR,
    wrapped: Callable[[ASGIApp], ASGIApp] = lambda app: app,
    keeps_tasks: bool = True,
    resolve: Resolve = resolve,
    host: str = "127.0.0.1",
    **environ: str,
) -> AsyncIterator[Served]:
    settings = load_settings(environ, None)
    log = MemoryEventLog(settings.event_log_max_tasks)
    executor = ScriptedExecutor(log, script)
    skill = AgentSkill(id="s", name="scripted", description="Does what its script says.", tags=["test"])
    with listen(host, 0) as listener:
        url = address(listener)
        card = agent_card(
            name="Scripted",
            description="A test.",
            url=url,
            version="1",
            skills=[skill],
            schemes=security_schemes(settings),
            keeps_tasks=keeps_tasks,
        )
        handler = request_handler(executor, log, card, settings, agent=agent, resolve=resolve)
        routes = [*health_routes(lambda: True, lambda _: [{"name": "version"}]), *a2a_routes(handler, card, settings)]
        app = Starlette(routes=[*routes, *extra_routes], middleware=auth_middleware(settings))
        try:
            # An empty TLS context: loading certificates takes longer than most of the tests.
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            async with (
                _answering(wrapped(app), listener) as server,
                httpx.AsyncClient(timeout=60, trust_env=False, verify=tls) as http,
            ):
                yield Served(url, log, executor, handler, card, http, server=server)
        finally:
            await handler.aclose()


@asynccontextmanager
async def listening(app: Starlette) -> AsyncIterator[str]:
    """Any app on a loopback port: its address."""
    with listen("127.0.0.1", 0) as listener:
        async with _answering(app, listener):
            yield address(listener)


def address(listener: socket.socket) -> str:
    host, port = listener.getsockname()
    return f"http://{host}:{port}"


class LoopbackServer:
    """uvicorn without its main loop, whose ticks would cost every test a fifth of a second."""

    def __init__(self, app: ASGIApp) -> None:
        self._config = uvicorn.Config(
            app, log_config=None, lifespan="off", ws="none", timeout_keep_alive=KEEP_ALIVE_SECONDS
        )
        self._config.load()
        self._server = uvicorn.Server(self._config)

    async def start(self, listener: socket.socket) -> None:
        self._server = uvicorn.Server(self._config)
        self._server.lifespan = self._config.lifespan_class(self._config)
        await self._server.startup(sockets=[listener])

    def close(self) -> None:
        """Accept no more connections."""
        for listening_server in self._server.servers:
            listening_server.close()

    async def stop(self) -> None:
        """Cut all connections."""
        for connection in list(self._server.server_state.connections):
            connection.shutdown()
        tasks = list(self._server.server_state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # The connection of a cancelled request is still open.
        for connection in list(self._server.server_state.connections):
            connection.transport.close()
        await asyncio.sleep(0)


@asynccontextmanager
async def _answering(app: ASGIApp, listener: socket.socket) -> AsyncIterator[LoopbackServer]:
    server = LoopbackServer(app)
    await server.start(listener)
    try:
        yield server
    finally:
        server.close()
        await server.stop()
        await abort_connections(server._server)


def _names(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}
