"""Who may call: with a shared key set, whoever has it. Health checks and the agent card stay open."""

from __future__ import annotations

import hmac
from typing import Final

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ai_platform_engineering.settings import Settings

CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", *CARD_PATHS})


def auth_middleware(settings: Settings) -> list[Middleware]:
    """For the app's list of middleware: empty when no key is set."""
    key = settings.a2a_auth_shared_key
    return [] if key is None else [Middleware(SharedKeyAuth, key=key.get_secret_value())]


class SharedKeyAuth:
    """Lets through what carries `Authorization: Bearer <key>`."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in OPEN_PATHS or self._knows_key(Headers(scope=scope)):
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refusal = JSONResponse(
                {"error": "unauthorized", "message": "Send the header Authorization: Bearer <A2A_AUTH_SHARED_KEY>."},
                status_code=401,
                headers={"WWW-Authenticate": "Bearer"},
            )
            await refusal(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _knows_key(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(token.strip().encode(), self._key)
