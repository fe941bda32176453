"""The public keys of an OAuth2 issuer: which of the published keys are used, and with which algorithms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx
import jwt

from ai_platform_engineering.utils.oidc.provider import ProviderError, get_json

_RSA: Final = frozenset({"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"})
ALGORITHMS: Final = _RSA | {"ES256", "ES384", "ES512", "EdDSA"}
"""The accepted algorithms: asymmetric ones, whose keys are public."""

_MAX_KEYS: Final = 100
_MIN_RSA_BITS: Final = 2048


@dataclass(frozen=True, slots=True)
class IssuerKey:
    id: str | None
    algorithms: frozenset[str]
    key: Any


async def fetch_keys(http: httpx.AsyncClient, jwks_url: str) -> tuple[IssuerKey, ...]:
    """The usable keys at `jwks_url`. Raises `ProviderError` if there are none."""
    match await get_json(http, jwks_url):
        case {"keys": list(entries)}:
            keys = tuple(_usable_keys(entries[:_MAX_KEYS]))
        case _:
            keys = ()
    if not keys:
        raise ProviderError("none of its keys can be used")
    return keys


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
