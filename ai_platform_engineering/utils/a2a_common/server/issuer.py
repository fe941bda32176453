"""Verifies access tokens with the keys of an OAuth2 issuer.

Keys are fetched when first needed, and again when a token matches none of them, with a minimum pause between fetches.
While the issuer cannot be reached, the known keys stay in use.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx
import jwt

from ai_platform_engineering.utils.a2a_common.server.issuer_keys import ALGORITHMS, IssuerKey, NoKeysError, fetch_keys
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

MAX_TOKEN_LENGTH: Final = 16_384
_PAUSE_SECONDS: Final = 10.0
"""Between two fetches, so that tokens with invented key ids do not cause requests to the issuer."""
_PAUSE_WITHOUT_KEYS: Final = 1.0
_FRESH_SECONDS: Final = 3600.0
"""After this time keys are fetched again, because the issuer may have revoked one."""
_LEEWAY_SECONDS: Final = 30.0


class IssuerError(ReadableError):
    """The issuer's keys cannot be fetched at the moment."""


class TokenRefusedError(Exception):
    """The token is not valid; the text is a sentence for its sender."""


class Issuer:
    """One issuer. `jwks_url` is needed only if its metadata do not have it. Without `audience` any is accepted."""

    def __init__(
        self,
        issuer: str,
        audience: str | None = None,
        jwks_url: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.issuer = issuer
        self._audience = audience
        self._jwks_url = jwks_url
        self._clock = clock
        # Created once: loading the certificates blocks the event loop noticeably.
        self._tls = httpx.create_ssl_context()
        self._keys: tuple[IssuerKey, ...] = ()
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._fetching: asyncio.Task[None] | None = None
        self._reachable = True

    async def check(self, token: str) -> Mapping[str, Any]:
        """The claims of a valid token. Raises `TokenRefusedError`, or `IssuerError` if it cannot be verified now."""
        algorithm, key_id = _header(token)
        claims = self._verified(token, algorithm, key_id)
        if claims is None:
            await self._fetch()
            claims = self._verified(token, algorithm, key_id)
        elif self._clock() - self._fetched_at > _FRESH_SECONDS:
            self._begin_fetch()
        if claims is not None:
            return claims
        if not self._keys:
            raise IssuerError("The keys of the OAuth2 issuer cannot be fetched at the moment. Try again in a minute.")
        raise TokenRefusedError("The access token was not signed by a key of the issuer.")

    def _verified(self, token: str, algorithm: str, key_id: str | None) -> Mapping[str, Any] | None:
        """The claims of the token; None if no known key has signed it."""
        for key in self._keys:
            if algorithm in key.algorithms and key_id in {None, key.id}:
                try:
                    return self._claims(token, algorithm, key)
                except jwt.InvalidSignatureError:
                    continue
        return None

    def _claims(self, token: str, algorithm: str, key: IssuerKey) -> Mapping[str, Any]:
        bare = self.issuer.rstrip("/")
        try:
            return jwt.decode(
                token,
                key.key,
                [algorithm],
                options={"require": ["exp", "iss"], "verify_aud": self._audience is not None},
                audience=self._audience,
                issuer=[bare, f"{bare}/"],
                leeway=_LEEWAY_SECONDS,
            )
        except jwt.InvalidSignatureError:
            raise
        except jwt.PyJWTError as error:
            raise TokenRefusedError(_reason(error)) from None

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
            self._keys = await fetch_keys(self.issuer, self._jwks_url, self._tls)
            self._fetched_at = self._clock()
            if not self._reachable:
                logger.info("The OAuth2 issuer %s can be reached again.", self.issuer)
            self._reachable = True
        except NoKeysError as reason:
            if self._reachable:
                effect = "The known keys stay in use." if self._keys else "No access token can be verified."
                logger.warning(
                    "The keys of the OAuth2 issuer %s cannot be fetched: %s. %s", self.issuer, reason, effect
                )
            self._reachable = False
        finally:
            self._fetching = None


def _header(token: str) -> tuple[str, str | None]:
    """The algorithm of a token and the id of its key, from its unverified header."""
    try:
        header = jwt.get_unverified_header(token) if len(token) <= MAX_TOKEN_LENGTH else {}
    except jwt.PyJWTError:
        header = {}
    match header:
        case {"alg": str(algorithm)} if algorithm in ALGORITHMS:
            return algorithm, header.get("kid")
        case {"alg": _}:
            raise TokenRefusedError("The access token is signed with an algorithm that is not accepted here.")
        case _:
            raise TokenRefusedError("The bearer value is not an access token.")


def _reason(error: jwt.PyJWTError) -> str:
    match error:
        case jwt.ExpiredSignatureError():
            return "The access token has expired."
        case jwt.ImmatureSignatureError():
            return "The access token is not valid yet, or the clocks differ."
        case jwt.InvalidAudienceError() | jwt.MissingRequiredClaimError(claim="aud"):
            return "The access token was issued for another audience."
        case jwt.InvalidIssuerError():
            return "The access token is from another issuer."
        case _:
            return "The access token cannot be used: a claim is missing or not valid."
