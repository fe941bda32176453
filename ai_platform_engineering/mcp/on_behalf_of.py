"""The user of a call, for MCP servers that ask for it: a signed header, or an access token from a token exchange.

Both go with the calls of tools only. The session and the list of tools belong to all users.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import httpx

from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.manifest import McpServer, OnBehalfOf, SignedHeader, TokenExchange
from ai_platform_engineering.mcp.errors import NotStartable
from ai_platform_engineering.mcp.expansion import expanded
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.access_tokens import (
    AccessTokenError,
    AccessTokens,
    ExchangedTokens,
    Grant,
    TokenAuth,
)

_AUTHORIZATION: Final = "Authorization"
_BEARER: Final = "Bearer "


@dataclass(frozen=True, slots=True)
class Requester:
    """On whose behalf a tool is called. `access_token` is the user's own; None if the request came with another
    credential."""

    principal: Principal = ANONYMOUS
    access_token: str | None = field(default=None, repr=False)


class NoUserTokenError(Exception):
    """The call cannot be made on behalf of the user. The text completes the sentence "<tool> was not run: ..."."""


class UserHeaders(Protocol):
    """The headers of a call on behalf of a user."""

    @property
    def session_auth(self) -> httpx.Auth | None:
        """Authenticates the requests that belong to no user."""

    async def of(self, requester: Requester) -> Mapping[str, str]:
        """Raises `NoUserTokenError`."""

    def forget(self, headers: Mapping[str, str]) -> None:
        """Use the headers no more, which the server refused."""


def user_headers(server: McpServer, settings: Settings) -> UserHeaders | None:
    """The headers that the manifest asks for; None if it asks for none. Raises `NotStartable` if settings are missing
    or unusable."""
    match server.on_behalf_of:
        case OnBehalfOf(signed_header=SignedHeader() as asked):
            return _SignedHeaders(server, asked, settings)
        case OnBehalfOf(token_exchange=TokenExchange() as asked):
            return _ExchangedTokenHeaders(server, asked, settings)
        case _:
            return None


class _SignedHeaders:
    session_auth = None

    def __init__(self, server: McpServer, asked: SignedHeader, settings: Settings) -> None:
        # Imported on demand: cryptography is slow to load, and few installations need it here.
        from ai_platform_engineering.identity import principal_token  # noqa: PLC0415

        key = expanded(asked.key, settings.environ)
        self._key = principal_token.derived_key(key) if asked.derived else key.encode()
        self._audience = asked.audience or server.name
        self._tokens = principal_token
        if len(self._key) < principal_token.MIN_KEY_LENGTH:
            raise NotStartable(
                f"was not contacted because the key of 'signed_header' has fewer than {principal_token.MIN_KEY_LENGTH} "
                "characters"
            )

    async def of(self, requester: Requester) -> Mapping[str, str]:
        token = self._tokens.sign_principal(self._key, requester.principal, self._audience)
        return {self._tokens.PRINCIPAL_HEADER: token}

    def forget(self, headers: Mapping[str, str]) -> None:
        """Each call has a new one."""


class _ExchangedTokenHeaders:
    def __init__(self, server: McpServer, asked: TokenExchange, settings: Settings) -> None:
        grant = Grant.of(settings)
        if grant is None:
            raise NotStartable(
                "was not contacted because 'token_exchange' needs A2A_OAUTH_GRANT_URL, A2A_OAUTH_CLIENT_ID and "
                "A2A_OAUTH_CLIENT_SECRET, which are not set"
            )
        grant = replace(grant, audience=asked.audience, resource=asked.resource, scope=asked.scope)
        self._exchanged = ExchangedTokens(grant)
        has_own = any(name.lower() == _AUTHORIZATION.lower() for name in server.headers)
        self.session_auth = None if has_own else TokenAuth(AccessTokens(grant))

    async def of(self, requester: Requester) -> Mapping[str, str]:
        if requester.access_token is None:
            raise NoUserTokenError(
                "the server takes an access token of the user, and this request has none. Ask with an access token, "
                "for example after `platform-engineer login`"
            )
        try:
            return {_AUTHORIZATION: f"{_BEARER}{await self._exchanged.token(requester.access_token)}"}
        except AccessTokenError as error:
            raise NoUserTokenError(
                f"the access token of the user could not be exchanged. {error}".rstrip(".")
            ) from error

    def forget(self, headers: Mapping[str, str]) -> None:
        self._exchanged.forget(headers.get(_AUTHORIZATION, "").removeprefix(_BEARER))
