"""The public keys of an OAuth2 issuer, as it hands them out over HTTP."""

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

_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
ALGORITHMS: Final = _RSA | {"ES256", "ES384", "ES512", "EdDSA"}
"""Those whose keys can be shown to everybody."""

_SECONDS: Final = 5.0
_MAX_ANSWER_SIZE: Final = 1_000_000
_MAX_KEYS: Final = 100
_SMALLEST_RSA: Final = 2048


class NoKeysError(Exception):
    """They cannot be had; the text says why, as part of a sentence."""


@dataclass(frozen=True, slots=True)
class IssuerKey:
    id: str | None
    algorithms: frozenset[str]
    key: Any


async def fetch_keys(issuer: str, jwks_url: str | None, tls: ssl.SSLContext) -> tuple[IssuerKey, ...]:
    """The keys at `jwks_url` or, without one, where the issuer's metadata say."""
    try:
        async with asyncio.timeout(_SECONDS), httpx.AsyncClient(verify=tls, timeout=_SECONDS) as http:
            published = await _get(http, jwks_url or await _announced(http, issuer))
    except TimeoutError:
        raise NoKeysError(f"no answer within {_SECONDS:g} s") from None
    except httpx.HTTPStatusError as error:
        raise NoKeysError(f"HTTP {error.response.status_code}") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NoKeysError(reason_of(error)) from error
    match published:
        case {"keys": list(described)}:
            keys = tuple(_usable(described[:_MAX_KEYS]))
        case _:
            keys = ()
    if not keys:
        raise NoKeysError("there is no key among them that could be used")
    return keys


def metadata_addresses(issuer: str) -> list[str]:
    """Where an issuer describes itself: OpenID Connect adds a path, OAuth2 puts one before the issuer's own."""
    parts = urlsplit(issuer.rstrip("/"))
    own = f"{urlunsplit(parts)}/.well-known"
    before = urlunsplit(parts._replace(path=f"/.well-known/oauth-authorization-server{parts.path}"))
    return list(dict.fromkeys([f"{own}/openid-configuration", before, f"{own}/oauth-authorization-server"]))


async def _announced(http: httpx.AsyncClient, issuer: str) -> str:
    for address in metadata_addresses(issuer):
        match await _get(http, address):
            case {"jwks_uri": str(url)} if urlsplit(url).scheme in {"http", "https"}:
                return url
    raise NoKeysError("its metadata do not say where they are; set A2A_OAUTH_JWKS_URL")


async def _get(http: httpx.AsyncClient, address: str) -> object:
    """The JSON at an address; None where there is none."""
    async with http.stream("GET", address, headers={"Accept": "application/json"}) as response:
        if response.is_client_error:
            return None
        response.raise_for_status()
        body = bytearray()
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > _MAX_ANSWER_SIZE:
                raise NoKeysError("the answer is too long")
    try:
        found: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found


def _usable(described: Sequence[object]) -> Iterator[IssuerKey]:
    for each in described:
        if not isinstance(each, dict) or each.get("use") == "enc" or each.get("kty") == "oct":
            continue
        try:
            read = jwt.PyJWK(each)
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue
        key: Any = read.key
        if each.get("kty") == "RSA" and key.key_size < _SMALLEST_RSA:
            continue
        # An RSA key that does not say what it is for signs in all of their ways.
        stated = _RSA if each.get("kty") == "RSA" and "alg" not in each else {read.algorithm_name}
        if algorithms := ALGORITHMS & stated:
            yield IssuerKey(read.key_id, algorithms, key)
