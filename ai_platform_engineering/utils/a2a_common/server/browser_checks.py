"""Checks that keep web pages of other sites from calling a server on their visitor's machine: Host and Origin.

A page on `evil.example` can point that name at a loopback address and then call the server as its own origin (DNS
rebinding). The Host header then has the page's host, so a name that is not the server's is refused. Without that trick,
the Origin header names the page. Programs send no Origin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.settings.fields import is_loopback_host

OPEN_PATHS: Final = frozenset({"/healthz", "/readyz"})
"""Probes use the address of a container, which cannot be configured. These paths reveal only that the server runs."""

_READ_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})
_HOST_HEADER: Final = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[^\[\]:/@\s]+)(?::[0-9]{0,5})?")
_REFUSAL: Final = (
    "This server does not answer to the host name of the request. Set ALLOWED_HOSTS to the names it is called by."
)


def host_middleware(settings: Settings) -> list[Middleware]:
    public = urlsplit(settings.a2a_public_url or "").hostname or ""
    listens_on = "" if settings.a2a_host in _ANY_ADDRESS else settings.a2a_host
    return [Middleware(HostCheck, allowed=[public, listens_on, *settings.allowed_hosts.split(",")])]


def origin_middleware(settings: Settings) -> list[Middleware]:
    allowed = [origin.strip() for origin in settings.allowed_origins.split(",") if origin.strip()]
    return [Middleware(OriginCheck, allowed=allowed)]


class HostCheck:
    """Refuses requests for hosts that are neither loopback nor allowed, and requests without exactly one host."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str]) -> None:
        self._app = app
        self._allowed = frozenset(name for each in allowed if (name := _name(each)))
        self._domains = tuple(name for name in self._allowed if name.startswith("."))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in OPEN_PATHS or self._is_allowed(Headers(scope=scope)):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            body = {"error": "misdirected_request", "message": _REFUSAL}
            await JSONResponse(body, status_code=421)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _is_allowed(self, headers: Headers) -> bool:
        sent = headers.getlist("host")
        match = _HOST_HEADER.fullmatch(sent[0].lower()) if len(sent) == 1 else None
        if match is None:
            return False
        if "*" in self._allowed:
            return True
        host = _name(match["host"])
        return host in self._allowed or is_loopback_host(host) or f".{host}".endswith(self._domains)


class OriginCheck:
    """Refuses changing requests of pages that are neither served from here nor allowed."""

    def __init__(self, app: ASGIApp, allowed: Iterable[str]) -> None:
        self._app = app
        self._allowed = frozenset(origin.rstrip("/").lower() for origin in allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] in _READ_METHODS or self._is_allowed(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        message = "Pages of other sites may not call this server; ALLOWED_ORIGINS names those that may."
        await JSONResponse({"error": "forbidden", "message": message}, status_code=403)(scope, receive, send)

    def _is_allowed(self, headers: Headers) -> bool:
        origin = headers.get("origin", "").lower()
        return not origin or origin in self._allowed or urlsplit(origin).netloc == headers.get("host", "").lower()


def _name(host: str) -> str:
    """A host in normal form: lower case, addresses without brackets, `.example.com` for a domain."""
    name = host.strip().lower().strip("[]").removesuffix(".")
    return name.removeprefix("*") if name.startswith("*.") else name
