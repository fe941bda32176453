"""ASGI parts of the REST APIs that do not import FastAPI: a limit for request bodies, and an app built on first use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ai_platform_engineering.settings import Settings


class BodySize(NamedTuple):
    """A number of bytes, and the setting that holds it."""

    size: int
    setting: str


def request_limit(settings: Settings) -> BodySize:
    return BodySize(settings.max_request_bytes, "MAX_REQUEST_BYTES")


class BodyLimit:
    """Rejects bodies larger than `limit`, by their Content-Length or while they are received.

    `by_method` has other limits for single HTTP methods.
    """

    def __init__(self, app: ASGIApp, limit: BodySize, by_method: Mapping[str, BodySize] = MappingProxyType({})) -> None:
        self._app = app
        self._limit = limit
        self._by_method = by_method

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit, setting = self._by_method.get(scope["method"], self._limit)
        too_large = HTTPException(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is larger than {limit} bytes; {setting} sets the limit."
        )
        length = Headers(scope=scope).get("content-length", "")
        declared = int(length) if length.isdecimal() and len(length) < 19 else 0
        received = 0

        async def limited() -> Message:
            nonlocal received
            if declared > limit:
                raise too_large
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise too_large
            return message

        await self._app(scope, limited, send)


class LazyApp:
    """Builds the app on its first request, because most processes never get one.

    `build` runs once, in a thread. It contains the imports that are to be delayed.
    """

    def __init__(self, build: Callable[[], ASGIApp]) -> None:
        self._build = build
        self._building = asyncio.Lock()
        self._app: ASGIApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._app is None:
            async with self._building:
                if self._app is None:
                    self._app = await asyncio.to_thread(self._build)
        await self._app(scope, receive, send)
