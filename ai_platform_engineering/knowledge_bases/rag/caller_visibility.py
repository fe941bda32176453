"""Middleware: each request sees the datasources of its caller."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ai_platform_engineering.identity.principal import Principal, caller_in
from ai_platform_engineering.identity.principal_token import (
    PRINCIPAL_HEADER,
    PrincipalTokenError,
    derived_key,
    read_principal,
)
from ai_platform_engineering.knowledge_bases.rag.visibility import AUDIENCE, seen_by
from ai_platform_engineering.policy.decisions import Policy
from ai_platform_engineering.utils.keys import Key


class CallerVisibility:
    """Sets the policy of the caller: the user of the signed header, else the caller that the server has verified."""

    def __init__(self, app: ASGIApp, policy: Policy, key: Key | None = None) -> None:
        self._app = app
        self._policy = policy
        self._key = None if key is None else derived_key(key.value)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            caller = self._caller(scope)
        except PrincipalTokenError as error:
            message = f"The header {PRINCIPAL_HEADER} is not accepted: {error}."
            await JSONResponse({"error": "forbidden", "message": message}, status_code=403)(scope, receive, send)
            return
        with seen_by(self._policy.of(caller)):
            await self._app(scope, receive, send)

    def _caller(self, scope: Scope) -> Principal:
        token = Headers(scope=scope).get(PRINCIPAL_HEADER)
        if token is None or self._key is None:
            return caller_in(scope.get("state"))
        return read_principal(self._key, token, AUDIENCE)
