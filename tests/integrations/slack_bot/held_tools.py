"""A knowledge base whose tools can be held: what happens meanwhile happens while the tool runs."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ai_platform_engineering.knowledge_bases.rag.app import create_rag_app
from ai_platform_engineering.settings import Settings
from tests.servers import serving


class HeldTools:
    """In front of an MCP server. `called` says how often a tool was called since it is held."""

    def __init__(self) -> None:
        self.url = ""
        self.called: dict[str, int] = defaultdict(int)
        self._held: dict[str, asyncio.Event] = {}

    def before(self, app: ASGIApp) -> ASGIApp:
        async def held(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or scope["method"] != "POST":
                await app(scope, receive, send)
                return
            body = await _body(receive)
            await self._wait(body)
            await app(scope, _again(body, receive), send)

        return held

    @asynccontextmanager
    async def holding(self, *tools: str) -> AsyncIterator[None]:
        """Nothing comes of these tools until this is left."""
        released = asyncio.Event()
        self._held.update(dict.fromkeys(tools, released))
        self.called.clear()
        try:
            yield
        finally:
            for tool in tools:
                del self._held[tool]
            released.set()

    async def _wait(self, body: bytes) -> None:
        match _read(body):
            case {"method": "tools/call", "params": {"name": str(tool)}} if tool in self._held:
                self.called[tool] += 1
                await self._held[tool].wait()


@asynccontextmanager
async def knowledge_base(folder: Path) -> AsyncIterator[HeldTools]:
    """The documentation of the product, searched by its words."""
    tools = HeldTools()

    def app_of(settings: Settings) -> ASGIApp:
        return tools.before(create_rag_app(settings))

    async with serving(app_of, {"DATA_DIR": str(folder), "EMBEDDINGS_PROVIDER": "none"}) as tools.url:
        yield tools


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


async def _body(receive: Receive) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if message["type"] != "http.request" or not message.get("more_body"):
            return body


def _again(body: bytes, receive: Receive) -> Receive:
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> Message:
        return left.pop() if left else await receive()

    return read
