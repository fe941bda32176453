"""Authentication of callers with the shared key or an access token of the OAuth2 issuer, if these are configured.

Health checks, the agent card and the files of the web page need no authentication, nor do the metrics with
`METRICS_PUBLIC`.
"""

from __future__ import annotations

import hmac
from collections.abc import Container
from typing import TYPE_CHECKING, Final

from a2a.types.a2a_pb2 import HTTPAuthSecurityScheme, SecurityScheme
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.caller import CALLER, KEY_HOLDER, Caller
from ai_platform_engineering.utils.keys import Key, Place, opening_key

if TYPE_CHECKING:
    from ai_platform_engineering.utils.a2a_common.server.issuer import Issuer

CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
METRICS_PATH: Final = "/metrics"
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", *CARD_PATHS})
_RETRY_SECONDS: Final = "5"


def auth_middleware(settings: Settings, place: Place = "front") -> list[Middleware]:
    """The app's middleware for authentication; empty if neither key nor issuer is configured."""
    key, issuer = opening_key(settings, place), _issuer(settings)
    if key is None and issuer is None:
        return []
    open_paths = OPEN_PATHS | {METRICS_PATH} if settings.metrics_public else OPEN_PATHS
    return [Middleware(BearerAuth, key=key, issuer=issuer, open_paths=open_paths)]


def security_schemes(settings: Settings, place: Place = "front") -> dict[str, SecurityScheme]:
    """The security schemes for the agent card. One of them is enough."""
    schemes = {}
    if opening_key(settings, place) is not None:
        key = HTTPAuthSecurityScheme(scheme="bearer", description="The key that the server's operator gave out.")
        schemes["key"] = SecurityScheme(http_auth_security_scheme=key)
    if settings.a2a_oauth_issuer is not None:
        made_for = f", made for {settings.a2a_oauth_audience}" if settings.a2a_oauth_audience else ""
        token = HTTPAuthSecurityScheme(
            scheme="bearer",
            bearer_format="JWT",
            description=f"An OAuth2 access token of {settings.a2a_oauth_issuer}{made_for}.",
        )
        schemes["access_token"] = SecurityScheme(http_auth_security_scheme=token)
    return schemes


class BearerAuth:
    """Accepts requests whose `Authorization: Bearer` is the key or a valid access token.

    Accepted requests have the verified caller in `scope["state"]`.
    """

    def __init__(
        self,
        app: ASGIApp,
        key: Key | None = None,
        issuer: Issuer | None = None,
        open_paths: Container[str] = OPEN_PATHS,
    ) -> None:
        self._app = app
        self._open_paths = open_paths
        self._key = key
        self._issuer = issuer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or scope["path"] in self._open_paths or _is_public(scope):
            await self._app(scope, receive, send)
            return
        found = await self._verified(_bearer(Headers(scope=scope)))
        if isinstance(found, Caller):
            await self._app({**scope, "state": {**scope.get("state", {}), CALLER: found}}, receive, send)
        elif scope["type"] == "http":
            await found(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _verified(self, sent: str) -> Caller | Response:
        """The caller of the key or token, or the error response."""
        if self._key is not None and hmac.compare_digest(sent.encode(), self._key.value.encode()):
            return KEY_HOLDER
        if self._issuer is None or not sent:
            return self._unauthorized()
        from ai_platform_engineering.utils.a2a_common.server.issuer import (  # noqa: PLC0415 - as in `_issuer`
            IssuerError,
            TokenRefusedError,
        )

        try:
            return Caller.with_token(await self._issuer.check(sent))
        except TokenRefusedError as error:
            return self._unauthorized(str(error))
        except IssuerError as error:
            body = {"error": "unavailable", "message": str(error)}
            return JSONResponse(body, status_code=503, headers={"Retry-After": _RETRY_SECONDS})

    def _unauthorized(self, why: str = "") -> Response:
        wanted = [f"<{self._key.setting}>"] if self._key is not None else []
        if self._issuer is not None:
            wanted.append(f"<access token of {self._issuer.issuer}>")
        message = f"{why} Send the header Authorization: Bearer {' or '.join(wanted)}.".lstrip()
        challenge = 'Bearer error="invalid_token"' if why else "Bearer"
        return JSONResponse(
            {"error": "unauthorized", "message": message}, status_code=401, headers={"WWW-Authenticate": challenge}
        )


def _is_public(scope: Scope) -> bool:
    """Whether the request reads one of the app's `public_paths`."""
    if scope["type"] != "http" or scope["method"] not in {"GET", "HEAD"} or "app" not in scope:
        return False
    return scope["path"] in getattr(scope["app"].state, "public_paths", ())


def _issuer(settings: Settings) -> Issuer | None:
    if settings.a2a_oauth_issuer is None:
        return None
    # Imported on demand: cryptography is slow to load.
    from ai_platform_engineering.utils.a2a_common.server.issuer import Issuer  # noqa: PLC0415

    return Issuer(settings.a2a_oauth_issuer, settings.a2a_oauth_audience, settings.a2a_oauth_jwks_url)


def _bearer(headers: Headers) -> str:
    scheme, _, sent = headers.get("authorization", "").partition(" ")
    return sent.strip() if scheme.lower() == "bearer" else ""
