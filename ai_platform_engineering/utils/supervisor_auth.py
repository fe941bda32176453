"""How a client authenticates at the supervisor: with an access token of its own, a key, or the login of the
person who uses it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

import httpx

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.access_tokens import (
    AccessTokenError,
    AccessTokenRefusedError,
    AccessTokens,
    Grant,
    TokenAuth,
    TokenSource,
    usable_seconds,
)
from ai_platform_engineering.utils.oidc.login_file import Login, LoginFile
from ai_platform_engineering.utils.oidc.provider import ProviderError, fetch_metadata, provider_client
from ai_platform_engineering.utils.oidc.token_endpoint import Client, GrantError, Tokens, request_tokens


class SupervisorAuth(TokenAuth):
    """Authenticates at the supervisor with an access token, a key, the login at `url`, or not at all."""

    def __init__(self, settings: Settings, url: str | None = None) -> None:
        super().__init__(_tokens(settings, url))


def _tokens(settings: Settings, url: str | None) -> TokenSource | None:
    if (grant := Grant.of(settings)) is not None:
        return AccessTokens(grant)
    if (key := settings.supervisor_key or settings.a2a_auth_shared_key) is not None:
        return _Key(key.get_secret_value())
    if url is None:
        return None
    logins = LoginFile(settings.logins_file)
    login = logins.find(url)
    return LoginTokens(logins, login) if login is not None else None


class _Key:
    def __init__(self, key: str) -> None:
        self._key = key

    async def token(self) -> str:
        return self._key

    def forget(self, token: str) -> None:
        """A key has no successor."""


class LoginTokens:
    """The access token of a login. An expired one is refreshed, once for all processes of the user."""

    def __init__(self, logins: LoginFile, login: Login, clock: Callable[[], float] = time.time) -> None:
        self._logins = logins
        self._login = login
        self._clock = clock
        self._refused = ""
        self._refreshing: asyncio.Task[Login] | None = None

    async def token(self) -> str:
        if self._is_usable(self._login):
            return self._login.access_token
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refreshed(), name="login")
            self._refreshing.add_done_callback(self._end_refresh)
        # A caller that gives up must not interrupt the exchange: the new refresh token would be lost.
        return (await asyncio.shield(self._refreshing)).access_token

    def forget(self, token: str) -> None:
        self._refused = token

    def _end_refresh(self, refreshing: asyncio.Task[Login]) -> None:
        self._refreshing = None
        if not refreshing.cancelled() and refreshing.exception() is None:
            self._login = refreshing.result()

    def _is_usable(self, login: Login) -> bool:
        return login.access_token != self._refused and self._clock() < login.expires_at

    async def _refreshed(self) -> Login:
        with ExitStack() as stack:
            # In a thread, because another process may hold the lock while it asks the provider.
            await asyncio.to_thread(stack.enter_context, self._logins.locked())
            stored = self._logins.find(self._login.url)
            if stored is None:
                raise self._ended()
            if self._is_usable(stored):
                return stored
            login = login_of(stored.url, stored.issuer, stored.client_id, await self._exchange(stored), self._clock())
            if login.refresh_token is None:
                login = replace(login, refresh_token=stored.refresh_token)
            self._logins.save(login)
            return login

    async def _exchange(self, stored: Login) -> Tokens:
        if stored.refresh_token is None:
            raise self._ended()
        grant = {"grant_type": "refresh_token", "refresh_token": stored.refresh_token}
        try:
            async with provider_client(httpx.create_ssl_context()) as http:
                provider = await fetch_metadata(http, stored.issuer)
                return await request_tokens(http, provider, Client(stored.client_id), grant)
        except GrantError:
            raise self._ended() from None
        except ProviderError as error:
            raise AccessTokenError(
                f"The login at {stored.url} cannot be renewed at the moment: {stored.issuer} cannot be used ({error})."
            ) from None

    def _ended(self) -> AccessTokenRefusedError:
        url = self._login.url
        return AccessTokenRefusedError(
            f"The login at {url} has ended. Sign in again with `platform-engineer login --url {url}`."
        )


def login_of(url: str, issuer: str, client_id: str, tokens: Tokens, now: float) -> Login:
    """The login with these tokens. It counts as expired shortly before it is."""
    expires_at = now + usable_seconds(tokens.expires_in)
    return Login(url, issuer, client_id, tokens.access_token, tokens.refresh_token, expires_at)
