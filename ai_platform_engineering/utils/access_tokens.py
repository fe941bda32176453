"""Access tokens of OAuth2: of a client itself (client credentials), and for the users of a service behind it (token
exchange, RFC 8693).

A token is fetched when needed, and cached until shortly before it expires.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

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
_MAX_EXCHANGED: Final = 1_000
"""Users whose exchanged tokens are cached."""
_TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"  # noqa: S105 - a name of RFC 8693
_ACCESS_TOKEN_TYPE: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a name of RFC 8693


class AccessTokenError(ReadableError, httpx.ConnectError):
    """No access token could be fetched. It is a `ConnectError`, because the request it was for was never sent."""


class AccessTokenRefusedError(AccessTokenError):
    """The OAuth2 server refused: a retry does not help until a setting is changed."""


@dataclass(frozen=True, slots=True)
class Grant:
    """The token endpoint, the credentials of a client, and the token it wants. With a `subject_token`, that is a token
    on behalf of its user."""

    url: str
    client_id: str
    client_secret: str = field(repr=False)
    scope: str | None = None
    audience: str | None = None
    resource: str | None = None
    subject_token: str | None = field(default=None, repr=False)

    @property
    def form(self) -> dict[str, str]:
        """The parameters of the request, without the client's credentials."""
        if self.subject_token is None:
            form = {"grant_type": "client_credentials"}
        else:
            form = {
                "grant_type": _TOKEN_EXCHANGE,
                "subject_token": self.subject_token,
                "subject_token_type": _ACCESS_TOKEN_TYPE,
                "requested_token_type": _ACCESS_TOKEN_TYPE,
            }
        wanted = {"scope": self.scope, "audience": self.audience, "resource": self.resource}
        return form | {name: value for name, value in wanted.items() if value}

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


class TokenSource(Protocol):
    async def token(self) -> str: ...

    def forget(self, token: str) -> None:
        """Drop a token that a server refused."""


class TokenAuth(httpx.Auth):
    """Authenticates requests that have no Authorization header. A refused token is replaced once."""

    def __init__(self, tokens: TokenSource | None) -> None:
        self._tokens = tokens

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        if self._tokens is None or "Authorization" in request.headers:
            yield request
            return
        token = await self._tokens.token()
        request.headers["Authorization"] = f"Bearer {token}"
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED:
            self._tokens.forget(token)
            if (other := await self._tokens.token()) != token:
                request.headers["Authorization"] = f"Bearer {other}"
                yield request

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        raise RuntimeError("tokens are fetched by asynchronous clients only")


class AccessTokens:
    """The token of one grant. Concurrent callers wait for the same fetch."""

    def __init__(
        self, grant: Grant, clock: Callable[[], float] = time.monotonic, tls: ssl.SSLContext | None = None
    ) -> None:
        self._grant = grant
        self._clock = clock
        self._token = ""
        self._valid_until = 0.0
        self._in_body = False
        self._fetching: asyncio.Task[str] | None = None
        # Created once: loading the certificates takes longer than the request, and blocks the event loop.
        self._tls = tls or httpx.create_ssl_context()

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
            raise _refusal(response, self._grant)
        fields = fields_of(response)
        token = fields.get("access_token")
        if not isinstance(token, str) or not re.fullmatch(r"[\x21-\x7e]+", token):
            raise AccessTokenRefusedError("The response of A2A_OAUTH_GRANT_URL contains no access token.")
        self._token = token
        self._valid_until = requested_at + usable_seconds(fields.get("expires_in"))
        return token

    async def _request(self, http: httpx.AsyncClient) -> httpx.Response:
        grant = self._grant
        if self._in_body:
            credentials = {"client_id": grant.client_id, "client_secret": grant.client_secret}
            return await http.post(grant.url, data=grant.form | credentials)
        return await http.post(grant.url, data=grant.form, auth=basic_auth(grant.client_id, grant.client_secret))


class ExchangedTokens:
    """Tokens of one service for its users, by the access tokens that the users have sent."""

    def __init__(self, grant: Grant, clock: Callable[[], float] = time.monotonic) -> None:
        self._grant = grant
        self._clock = clock
        self._tls = httpx.create_ssl_context()
        self._by_subject: OrderedDict[bytes, AccessTokens] = OrderedDict()

    async def token(self, subject_token: str) -> str:
        """The service's token for the user of `subject_token`."""
        key = hashlib.sha256(subject_token.encode()).digest()
        tokens = self._by_subject.get(key)
        if tokens is None:
            grant = replace(self._grant, subject_token=subject_token)
            tokens = self._by_subject[key] = AccessTokens(grant, self._clock, self._tls)
            if len(self._by_subject) > _MAX_EXCHANGED:
                self._by_subject.popitem(last=False)
        self._by_subject.move_to_end(key)
        return await tokens.token()

    def forget(self, token: str) -> None:
        """Drop a token that the service refused."""
        for tokens in self._by_subject.values():
            tokens.forget(token)


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


def _refusal(response: httpx.Response, grant: Grant) -> AccessTokenError:
    code = error_code(response)
    why = code or f"HTTP {response.status_code}"
    if response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR or response.status_code in {
        httpx.codes.REQUEST_TIMEOUT,
        httpx.codes.TOO_MANY_REQUESTS,
    }:
        return AccessTokenError(f"The OAuth2 server gives no access token at the moment ({why}).")
    if grant.subject_token is None:
        scope, target = "A2A_OAUTH_SCOPE", "A2A_OAUTH_AUDIENCE"
    else:
        scope = target = "'token_exchange' in the manifest, and that the client may exchange tokens"
    to_check = {
        "invalid_scope": scope,
        "invalid_target": target,
        **({"invalid_request": target, "invalid_grant": target} if grant.subject_token else {}),
        "": "A2A_OAUTH_GRANT_URL",
    }.get(code, "A2A_OAUTH_CLIENT_ID and A2A_OAUTH_CLIENT_SECRET")
    return AccessTokenRefusedError(f"The OAuth2 server refused an access token ({why}): check {to_check}.")
