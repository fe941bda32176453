"""Verifies tokens of an OpenID Connect provider or OAuth2 issuer with its keys.

Keys are fetched when first needed, and again when a token matches none of them, with a minimum pause between fetches.
While the issuer cannot be reached, the known keys stay in use.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import httpx
import jwt

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.identity.token_claims import ClaimRules, UnusableClaimsError
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.settings.sign_in_settings import ANY_AUDIENCE
from ai_platform_engineering.utils.a2a_common.server.issuer_keys import ALGORITHMS, IssuerKey, fetch_keys
from ai_platform_engineering.utils.a2a_common.server.token_checks import (
    Kind,
    TokenRefusedError,
    check_access_token,
    check_id_token,
    reason,
)
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.oidc.provider import Provider, ProviderError, fetch_metadata, provider_client

logger = logging.getLogger(__name__)

MAX_TOKEN_LENGTH: Final = 16_384
_PAUSE_SECONDS: Final = 10.0
"""Between two fetches, so that tokens with invented key ids do not cause requests to the issuer."""
_PAUSE_WITHOUT_KEYS: Final = 1.0
_FRESH_SECONDS: Final = 3600.0
"""After this time keys and metadata are fetched again, because the issuer may have revoked a key."""
_LEEWAY_SECONDS: Final = 30.0


class IssuerError(ReadableError):
    """The issuer cannot be used at the moment."""


class Issuer:
    """One issuer. `jwks_url` is needed only if its metadata do not have it. Without `audience` any is accepted."""

    def __init__(
        self,
        issuer: str,
        audience: str | None = None,
        jwks_url: str | None = None,
        rules: ClaimRules | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self._audience = audience
        self._jwks_url = jwks_url
        self.rules = rules or ClaimRules()
        self._clock = clock
        # Created once: loading the certificates blocks the event loop noticeably.
        self.tls = httpx.create_ssl_context()
        self._provider: Provider | None = None
        self._described_at = float("-inf")
        self._asked_at = float("-inf")
        self._describing: asyncio.Task[None] | None = None
        self._keys: tuple[IssuerKey, ...] = ()
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._reachable = True

    @classmethod
    def of(cls, settings: Settings) -> Issuer | None:
        """The configured issuer, or None."""
        if settings.a2a_oauth_issuer is None:
            return None
        audience = None if settings.a2a_oauth_audience == ANY_AUDIENCE else settings.a2a_oauth_audience
        return cls(settings.a2a_oauth_issuer, audience, settings.a2a_oauth_jwks_url, ClaimRules.of(settings))

    async def provider(self) -> Provider:
        """The metadata of the issuer. Raises `IssuerError` if they cannot be fetched."""
        now = self._clock()
        pause = _PAUSE_WITHOUT_KEYS if self._provider is None else _PAUSE_SECONDS
        is_stale = now - self._described_at > _FRESH_SECONDS and now - self._asked_at >= pause
        if is_stale and self._describing is None:
            self._asked_at = now
            self._describing = asyncio.create_task(self._fetch_metadata(), name="issuer-metadata")
        if self._describing is not None:
            await asyncio.shield(self._describing)
        if self._provider is None:
            raise IssuerError("The OpenID Connect provider cannot be reached at the moment. Try again in a minute.")
        return self._provider

    async def _fetch_metadata(self) -> None:
        try:
            async with provider_client(self.tls) as http:
                self._describe(await fetch_metadata(http, self.issuer))
        except ProviderError as error:
            logger.warning("The metadata of %s cannot be fetched: %s.", self.issuer, error)
        finally:
            self._describing = None

    async def principal(self, token: str) -> Principal:
        """The sender of a valid access token. Raises as `check` does."""
        try:
            return self.rules.principal(await self.check(token))
        except UnusableClaimsError as error:
            raise TokenRefusedError(str(error)) from None

    async def check(self, token: str) -> Mapping[str, Any]:
        """The claims of a valid access token.

        Raises `TokenRefusedError`, or `IssuerError` if it cannot be verified now.
        """
        header = _header(token, "access token")
        claims = await self._check(token, header, "access token", self._audience, ("exp", "iss"))
        check_access_token(header, claims)
        return claims

    async def check_id_token(
        self, token: str, client_id: str, nonce: str, access_token: str | None
    ) -> Mapping[str, Any]:
        """The claims of a valid ID token, which came with `access_token`. Raises as `check` does."""
        header = _header(token, "ID token")
        claims = await self._check(token, header, "ID token", client_id, ("exp", "iss", "aud", "sub", "iat"))
        check_id_token(header, claims, client_id, nonce, access_token)
        return claims

    async def _check(
        self, token: str, header: Mapping[str, Any], kind: Kind, audience: str | None, required: Sequence[str]
    ) -> Mapping[str, Any]:
        def verified() -> Mapping[str, Any] | None:
            """The claims of the token; None if no known key has signed it."""
            for key in self._keys:
                if header["alg"] in key.algorithms and header.get("kid") in {None, key.id}:
                    try:
                        return self._claims(token, header["alg"], key, kind, audience, required)
                    except jwt.InvalidSignatureError:
                        continue
            return None

        claims = verified()
        if claims is None:
            await self._fetch()
            claims = verified()
        elif self._clock() - self._fetched_at > _FRESH_SECONDS:
            self._begin_fetch()
        if claims is not None:
            return claims
        if not self._keys:
            raise IssuerError("The keys of the OAuth2 issuer cannot be fetched at the moment. Try again in a minute.")
        raise TokenRefusedError(f"The {kind} was not signed by a key of the issuer.")

    def _claims(
        self, token: str, algorithm: str, key: IssuerKey, kind: Kind, audience: str | None, required: Sequence[str]
    ) -> Mapping[str, Any]:
        bare = self.issuer.rstrip("/")
        # The metadata have the exact name. Without them a slash at the end may differ from the setting.
        names = [bare, f"{bare}/"] if self._provider is None else [self._provider.issuer]
        try:
            return jwt.decode(
                token,
                key.key,
                [algorithm],
                options={"require": [*required], "verify_aud": audience is not None},
                audience=audience,
                issuer=names,
                leeway=_LEEWAY_SECONDS,
            )
        except jwt.InvalidSignatureError:
            raise
        except jwt.PyJWTError as error:
            raise TokenRefusedError(reason(error, kind)) from None

    async def _fetch(self) -> None:
        """Fetch the current keys, unless they were fetched just now."""
        self._begin_fetch()
        if self._fetching is not None:
            await asyncio.shield(self._fetching)

    def _begin_fetch(self) -> None:
        pause = _PAUSE_SECONDS if self._keys else _PAUSE_WITHOUT_KEYS
        if self._fetching is None and self._clock() - self._tried_at >= pause:
            self._fetching = asyncio.create_task(self._replace_keys(), name="issuer-keys")

    async def _replace_keys(self) -> None:
        self._tried_at = self._clock()
        try:
            async with provider_client(self.tls) as http:
                self._keys = await fetch_keys(http, self._jwks_url or await self._find_jwks_url(http))
            self._fetched_at = self._clock()
            if not self._reachable:
                logger.info("The OAuth2 issuer %s can be reached again.", self.issuer)
            self._reachable = True
        except ProviderError as error:
            if self._reachable:
                effect = "The known keys stay in use." if self._keys else "No access token can be verified."
                logger.warning("The keys of the OAuth2 issuer %s cannot be fetched: %s. %s", self.issuer, error, effect)
            self._reachable = False
        finally:
            self._fetching = None

    async def _find_jwks_url(self, http: httpx.AsyncClient) -> str:
        provider = await fetch_metadata(http, self.issuer)
        self._describe(provider)
        if provider.jwks_uri is None:
            raise ProviderError("its metadata do not contain their address; set A2A_OAUTH_JWKS_URL")
        return provider.jwks_uri

    def _describe(self, provider: Provider) -> None:
        self._provider, self._described_at = provider, self._clock()


def _header(token: str, kind: Kind) -> Mapping[str, Any]:
    """The unverified header of a token, with an algorithm that is accepted."""
    try:
        header = jwt.get_unverified_header(token) if len(token) <= MAX_TOKEN_LENGTH else {}
    except jwt.PyJWTError:
        header = {}
    match header:
        case {"alg": str(algorithm)} if algorithm in ALGORITHMS:
            return header
        case {"alg": _}:
            raise TokenRefusedError(f"The {kind} is signed with an algorithm that is not accepted here.")
        case _ if kind == "access token":
            raise TokenRefusedError("The bearer value is not an access token.")
        case _:
            raise TokenRefusedError(f"The {kind} is not a JSON web token.")
