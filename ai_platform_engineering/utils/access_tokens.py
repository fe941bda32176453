"""Access tokens for clients of the supervisor: OAuth2, the client credentials grant.

A token is fetched when needed, and cached until shortly before it expires.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import httpx

from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.settings.sign_in_settings import ANY_AUDIENCE
from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.keys import opening_key, sent_key, supervisor_keys
from ai_platform_engineering.utils.oidc.token_endpoint import basic_auth, error_code, fields_of
from ai_platform_engineering.utils.outbound.policy import OPERATOR
from ai_platform_engineering.utils.outbound.transport import CheckedTransport

_SECONDS: Final = 10.0
_MARGIN_SECONDS: Final = 30.0
_DEFAULT_LIFETIME: Final = 300.0
"""Seconds that a token is considered valid if the server sends no `expires_in`."""


class AccessTokenError(ReadableError, httpx.ConnectError):
    """No access token could be fetched. It is a `ConnectError`, because the request it was for was never sent."""


class AccessTokenRefusedError(AccessTokenError):
    """The OAuth2 server refused: a retry does not help until a setting is changed."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The token endpoint and the credentials of a client."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    audience: str | None = None

    @classmethod
    def of(cls, settings: Settings) -> Grant | None:
        """The configured grant; None if there is none. Raises `SettingsError` if it is incomplete."""
        url, client_id, secret = (
            settings.a2a_oauth_grant_url,
            settings.a2a_oauth_client_id,
            settings.a2a_oauth_client_secret,
        )
        if url is None and client_id is None and secret is None:
            return None
        if url is None or client_id is None or secret is None:
            raise SettingsError(
                "A2A_OAUTH_GRANT_URL, A2A_OAUTH_CLIENT_ID and A2A_OAUTH_CLIENT_SECRET belong together: set all three, "
                "or none."
            )
        audience = None if settings.a2a_oauth_audience == ANY_AUDIENCE else settings.a2a_oauth_audience
        return cls(url, client_id, secret.get_secret_value(), settings.a2a_oauth_scope, audience)


class AccessTokens:
    """The token of one client. Concurrent callers wait for the same fetch."""

    def __init__(self, grant: Grant, clock: Callable[[], float] = time.monotonic) -> None:
        self._grant = grant
        self._clock = clock
        self._token = ""
        self._valid_until = 0.0
        self._in_body = False
        self._fetching: asyncio.Task[str] | None = None
        # Created once: loading the certificates takes longer than the request, and blocks the event loop.
        self._tls = httpx.create_ssl_context()

    async def token(self) -> str:
        if self._token and self._clock() < self._valid_until:
            return self._token
        if self._fetching is None:
            self._fetching = asyncio.create_task(self._fetch(), name="access-token")
            self._fetching.add_done_callback(self._fetched)
        return await asyncio.shield(self._fetching)

    def forget(self, token: str) -> None:
        """Drop a token that a server refused."""
        if token == self._token:
            self._token = ""

    def _fetched(self, fetching: asyncio.Task[str]) -> None:
        self._fetching = None
        if not fetching.cancelled():
            fetching.exception()  # raised in the callers; without callers it must not be logged as unhandled

    async def _fetch(self) -> str:
        requested_at = self._clock()
        try:
            transport = CheckedTransport(OPERATOR, tls=lambda: self._tls)
            async with asyncio.timeout(_SECONDS), httpx.AsyncClient(transport=transport, timeout=_SECONDS) as http:
                response = await self._request(http)
                if error_code(response) == "invalid_client" and not self._in_body:
                    # Some servers accept the secret only in the body.
                    self._in_body = True
                    response = await self._request(http)
        except TimeoutError:
            raise AccessTokenError(f"The OAuth2 server gave no access token within {_SECONDS:g} s.") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise AccessTokenError(
                f"The OAuth2 server that gives access tokens cannot be reached ({reason_of(error)})."
            ) from error
        if response.status_code != httpx.codes.OK:
            self._in_body = False
            raise _refusal(response)
        fields = fields_of(response)
        token = fields.get("access_token")
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
            raise AccessTokenRefusedError("The response of A2A_OAUTH_GRANT_URL contains no access token.")
        self._token = token
        self._valid_until = requested_at + usable_seconds(fields.get("expires_in"))
        return token

    async def _request(self, http: httpx.AsyncClient) -> httpx.Response:
        grant = self._grant
        form = {"grant_type": "client_credentials"}
        form |= {name: value for name, value in (("scope", grant.scope), ("audience", grant.audience)) if value}
        if self._in_body:
            credentials = {"client_id": grant.client_id, "client_secret": grant.client_secret}
            return await http.post(grant.url, data=form | credentials)
        return await http.post(grant.url, data=form, auth=basic_auth(grant.client_id, grant.client_secret))


class OwnBearer:
    """The bearer value that the supervisor sends to an agent: the agent's key, else the caller's access token, else an
    access token of its own, else none. The supervisor's own keys are never passed on."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        grant = Grant.of(settings)
        self._tokens = AccessTokens(grant) if grant else None
        self._own_keys = supervisor_keys(settings)

    async def token(self, agent: str, callers_token: str | None = None) -> str | None:
        if (key := opening_key(self._settings, agent)) is not None:
            return key.value
        if callers_token and sent_key(self._own_keys, callers_token) is None:
            return callers_token
        return None if self._tokens is None else await self._tokens.token()


def usable_seconds(expires_in: object) -> float:
    """How long a token is used that is valid for `expires_in` seconds."""
    seconds = _DEFAULT_LIFETIME
    if isinstance(expires_in, int | float | str):
        with suppress(ValueError):
            seconds = float(expires_in)
    return max(seconds - _MARGIN_SECONDS, seconds / 2)


def _refusal(response: httpx.Response) -> AccessTokenError:
    code = error_code(response)
    why = code or f"HTTP {response.status_code}"
    if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR or response.status_code in {
        httpx.codes.REQUEST_TIMEOUT,
        httpx.codes.TOO_MANY_REQUESTS,
    }:
        return AccessTokenError(f"The OAuth2 server gives no access token at the moment ({why}).")
    to_check = {
        "invalid_scope": "A2A_OAUTH_SCOPE",
        "invalid_target": "A2A_OAUTH_AUDIENCE",
        "": "A2A_OAUTH_GRANT_URL",
    }.get(code, "A2A_OAUTH_CLIENT_ID and A2A_OAUTH_CLIENT_SECRET")
    return AccessTokenRefusedError(f"The OAuth2 server refused an access token ({why}): check {to_check}.")
