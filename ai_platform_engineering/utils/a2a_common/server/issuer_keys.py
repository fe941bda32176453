"""Fetches the public keys of an OAuth2 issuer over HTTP."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import httpx
import jwt

from ai_platform_engineering.utils.connections import reason_of
from ai_platform_engineering.utils.outbound.policy import OPERATOR
from ai_platform_engineering.utils.outbound.transport import CheckedTransport

_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
ALGORITHMS: Final = _RSA | {"ES256", "ES384", "ES512", "EdDSA"}
"""The accepted algorithms: asymmetric ones, whose keys are public."""

_SECONDS: Final = 5.0
_MAX_RESPONSE_SIZE: Final = 1_000_000
_MAX_KEYS: Final = 100
_MIN_RSA_BITS: Final = 2048


class NoKeysError(Exception):
    """The keys cannot be fetched; the text is the reason, as part of a sentence."""


@dataclass(frozen=True, slots=True)
class IssuerKey:
    id: str | None
    algorithms: frozenset[str]
    key: Any


async def fetch_keys(issuer: str, jwks_url: str | None, tls: ssl.SSLContext) -> tuple[IssuerKey, ...]:
    """The keys at `jwks_url` or, without one, at the address in the issuer's metadata."""
    try:
        transport = CheckedTransport(OPERATOR, tls=lambda: tls)
        async with asyncio.timeout(_SECONDS), httpx.AsyncClient(transport=transport, timeout=_SECONDS) as http:
            published = await _get(http, jwks_url or await _find_jwks_url(http, issuer))
    except TimeoutError:
        raise NoKeysError(f"no answer within {_SECONDS:g} s") from None
    except httpx.HTTPStatusError as error:
        raise NoKeysError(f"HTTP {error.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NoKeysError(reason_of(error)) from error
    match published:
        case {"keys": list(entries)}:
            keys = tuple(_usable_keys(entries[:_MAX_KEYS]))
        case _:
            keys = ()
    if not keys:
        raise NoKeysError("none of them can be used")
    return keys


def metadata_addresses(issuer: str) -> list[str]:
    """The addresses of an issuer's metadata: OpenID Connect appends a path, OAuth2 inserts one before the issuer's."""
    parts = urlsplit(issuer.rstrip("/"))
    own = f"{urlunsplit(parts)}/.well-known"
    before = urlunsplit(parts._replace(path=f"/.well-known/oauth-authorization-server{parts.path}"))
    return list(dict.fromkeys([f"{own}/openid-configuration", before, f"{own}/oauth-authorization-server"]))


async def _find_jwks_url(http: httpx.AsyncClient, issuer: str) -> str:
    for address in metadata_addresses(issuer):
        match await _get(http, address):
            case {"jwks_uri": str(url)} if urlsplit(url).scheme in {"http", "https"}:
                return url
    raise NoKeysError("its metadata do not contain their address; set A2A_OAUTH_JWKS_URL")


async def _get(http: httpx.AsyncClient, address: str) -> object:
    """The JSON at an address; None if there is none."""
    async with http.stream("GET", address, headers={"Accept": "application/json"}) as response:
        if response.is_client_error:
            return None
        response.raise_for_status()
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MAX_RESPONSE_SIZE:
                raise NoKeysError("the response is too long")
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content


def _usable_keys(entries: Sequence[object]) -> Iterator[IssuerKey]:
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("use") == "enc" or entry.get("kty") == "oct":
            continue
        try:
            read = jwt.PyJWK(entry)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue
        key: Any = read.key
        if entry.get("kty") == "RSA" and key.key_size < _MIN_RSA_BITS:
            continue
        # An RSA key without `alg` may be used with every RSA algorithm.
        stated = _RSA if entry.get("kty") == "RSA" and "alg" not in entry else {read.algorithm_name}
        if algorithms := ALGORITHMS & stated:
            yield IssuerKey(read.key_id, algorithms, key)
