"""How large the body of a request may be: by its header, or when more has come than that."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ai_platform_engineering.settings import Settings


class Limit(NamedTuple):
    """Bytes, and the setting that holds them."""

    size: int
    setting: str


def request_limit(settings: Settings) -> Limit:
    return Limit(settings.max_request_bytes, "MAX_REQUEST_BYTES")


class BodyLimit:
    """`by_method` has the limits of methods that differ from `limit`."""

    def __init__(self, app: ASGIApp, limit: Limit, by_method: Mapping[str, Limit] = MappingProxyType({})) -> None:
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
