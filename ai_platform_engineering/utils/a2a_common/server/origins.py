"""Which web pages may call: those served from here, and those the settings name. Programs send no origin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ai_platform_engineering.settings import Settings

_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def origin_middleware(settings: Settings) -> list[Middleware]:
    allowed = [origin.strip() for origin in settings.allowed_origins.split(",") if origin.strip()]
    return [Middleware(OriginCheck, allowed=allowed)]


class OriginCheck:
    """Keeps a page that somebody happens to visit from acting on a server on that person's own machine."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str]) -> None:
        self._app = app
        self._allowed = frozenset(origin.rstrip("/").lower() for origin in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _READING or self._may_call(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        message = "Pages of other sites may not call this server; ALLOWED_ORIGINS names those that may."
        await JSONResponse({"error": "forbidden", "message": message}, status_code=403)(scope, receive, send)

    def _may_call(self, headers: Headers) -> bool:
        origin = headers.get("origin", "").lower()
        return not origin or origin in self._allowed or urlsplit(origin).netloc == headers.get("host", "").lower()
