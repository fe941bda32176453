"""The HTTP client of the OpenAI SDK: aiohttp, which needs less CPU than httpx, shared by all models of an event loop.

Each event loop has its own client, which is closed when the loop is closed.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import urllib.request
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from httpx2 import AsyncClient

_LANGCHAIN_PROXY: Final = "OPENAI_PROXY"
"""LangChain's setting for a proxy. If it is set, LangChain creates its own client."""


@dataclass(frozen=True, slots=True)
class _SharedClient:
    client: AsyncClient
    closer: AsyncGenerator[None, None]
    start: asyncio.Task[None]


_clients: dict[asyncio.AbstractEventLoop, _SharedClient] = {}


def shared_http_client() -> AsyncClient | None:
    """None if the SDK must use its default client: without an event loop, or with a proxy that aiohttp cannot use."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    if os.environ.get(_LANGCHAIN_PROXY) or _has_socks_proxy():
        return None
    if loop not in _clients:
        client: AsyncClient = importlib.import_module("openai").DefaultAioHttpClient()
        closer = _close_at_end(loop, client)
        # An event loop closes the async generators that were started in it when it shuts down.
        _clients[loop] = _SharedClient(client, closer, loop.create_task(_start(closer)))
    return _clients[loop].client


async def _close_at_end(loop: asyncio.AbstractEventLoop, client: AsyncClient) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        del _clients[loop]
        await client.aclose()


async def _start(generator: AsyncGenerator[None, None]) -> None:
    await anext(generator)


def _has_socks_proxy() -> bool:
    return any(address.startswith("socks") for address in urllib.request.getproxies().values())
