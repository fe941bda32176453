"""Own code, or the library that it replaces, as a process to be measured: `python -m benchmarks.replaced`.

Both do the same work with the same server; only the client differs. It is asked as `benchmarks.alone` is.
"""

from __future__ import annotations

import argparse
import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest
from mcp.client.streamable_http import streamable_http_client

from ai_platform_engineering.mcp.connection import ConnectionState, McpCall, SessionConnection, Streams, open_session
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.mcp.streamable_http import http_streams
from ai_platform_engineering.utils.a2a_common.client.own_transport import OwnTransport, new_session
from ai_platform_engineering.utils.a2a_common.wire import Decoder
from benchmarks.alone import Request, obey
from benchmarks.samples import Answered
from benchmarks.scenario import TOOL

_AGENT: Final = "argocd"
_TASK: Final = "Get the version of Argo CD."
_TIMEOUT: Final = 30.0


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=[*_SUBJECTS])
    parser.add_argument("--url", required=True, help="the address of the agent or of the MCP server")
    options = parser.parse_args()
    asyncio.run(obey(_SUBJECTS[options.what](options.url)))


@asynccontextmanager
async def delegation(url: str, *, library: bool) -> AsyncIterator[Request]:
    """A question to an agent of ours on its own server; its stream is read to the end."""
    async with (
        httpx.AsyncClient(timeout=httpx.Timeout(_TIMEOUT, read=None)) as http,
        new_session(url, _TIMEOUT) as session,
    ):
        card = await A2ACardResolver(http, url).get_agent_card()
        client: Client | OwnTransport
        if library:
            client = ClientFactory(ClientConfig(streaming=True, httpx_client=http)).create(card)
        else:
            client = OwnTransport(session, http, card, url)

        async def ask(_context: str) -> Answered:
            name = uuid.uuid4().hex
            message = Message(message_id=name, context_id=name, role=Role.ROLE_USER, parts=[Part(text=_TASK)])
            request = SendMessageRequest(message=message)
            decoder = Decoder(_AGENT, 1)
            began = time.perf_counter()
            stream = (
                client.send_message(request) if isinstance(client, Client) else client.send_message_streaming(request)
            )
            events = [event async for item in stream for event in decoder.feed(item)]
            events += decoder.finish()
            return _answered(began, len(events))

        yield ask


@asynccontextmanager
async def http_call(url: str, *, library: bool) -> AsyncIterator[Request]:
    """A call of a tool on an MCP server over streamable HTTP."""
    async with mcp_session(url, ConnectionState(), library=library) as session:

        async def call(_context: str) -> Answered:
            began = time.perf_counter()
            await session.call_tool(McpCall(TOOL, {}, {}), _TIMEOUT)
            return _answered(began, 1)

        yield call


@asynccontextmanager
async def mcp_session(url: str, state: ConnectionState, *, library: bool) -> AsyncIterator[SessionConnection]:
    """A session with an MCP server over streamable HTTP."""
    endpoint = Endpoint(_AGENT, redact=lambda text: text, url=url)
    streams = _library_streams(url) if library else http_streams(endpoint, state)
    async with streams as opened, open_session(opened, state) as session:
        yield session


@asynccontextmanager
async def _library_streams(url: str) -> AsyncIterator[Streams]:
    async with streamable_http_client(url) as (inbox, outbox, _session_id):
        yield inbox, outbox


def _answered(began: float, events: int) -> Answered:
    seconds = time.perf_counter() - began
    return Answered(seconds, seconds, seconds, events)


_SUBJECTS: Final[dict[str, Callable[[str], AbstractAsyncContextManager[Request]]]] = {
    "delegation": lambda url: delegation(url, library=False),
    "delegation-library": lambda url: delegation(url, library=True),
    "http-call": lambda url: http_call(url, library=False),
    "http-call-library": lambda url: http_call(url, library=True),
}

if __name__ == "__main__":
    main()
