"""The HTTP client of the OpenAI SDK: aiohttp, which costs less than httpx, shared by all models of an event loop.

A client belongs to the event loop in which it was made and is closed with it.
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
"""LangChain's own setting for a proxy, for which it makes a client itself."""


@dataclass(frozen=True, slots=True)
class _Open:
    client: AsyncClient
    closing: AsyncGenerator[None, None]
    begun: asyncio.Task[None]


_open: dict[asyncio.AbstractEventLoop, _Open] = {}


def shared_http_client() -> AsyncClient | None:
    """None where the SDK's default has to do: outside of an event loop, or with a proxy that aiohttp cannot use."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    if os.environ.get(_LANGCHAIN_PROXY) or _has_socks_proxy():
        return None
    if loop not in _open:
        client: AsyncClient = importlib.import_module("openai").DefaultAioHttpClient()
        closing = _closing(loop, client)
        # When a loop ends, it closes the generators that were begun in it.
        _open[loop] = _Open(client, closing, loop.create_task(_begin(closing)))
    return _open[loop].client


async def _closing(loop: asyncio.AbstractEventLoop, client: AsyncClient) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        del _open[loop]
        await client.aclose()


async def _begin(generator: AsyncGenerator[None, None]) -> None:
    await anext(generator)


def _has_socks_proxy() -> bool:
    return any(address.startswith("socks") for address in urllib.request.getproxies().values())
