"""Principal tokens: a server that calls another one states for which user it does, signed with a key that both have.

A token is a JSON web token (HS256), valid for one minute and for one audience. Anonymous callers have no `sub`.
"""

from __future__ import annotations

import hmac
import time
import uuid
from collections.abc import Callable
from typing import Final

import jwt

from ai_platform_engineering.identity.principal import Principal

PRINCIPAL_HEADER: Final = "X-Platform-Engineer-Principal"
MIN_KEY_LENGTH: Final = 32
"""Characters of a key, as RFC 7518 requires for HS256."""

_ALGORITHM: Final = "HS256"
_ISSUER: Final = "platform-engineer"
_LIFETIME_SECONDS: Final = 60
_LEEWAY_SECONDS: Final = 30


def derived_key(key: str) -> bytes:
    """A signing key for this purpose only, from a key that has others."""
    return hmac.digest(key.encode(), b"principal", "sha256")


class PrincipalTokenError(Exception):
    """A principal token is not valid; the text says why."""


def sign_principal(
    key: str | bytes, principal: Principal, audience: str, clock: Callable[[], float] = time.time
) -> str:
    now = int(clock())
    claims = {
        "iss": _ISSUER,
        "aud": audience,
        "iat": now,
        "exp": now + _LIFETIME_SECONDS,
        "jti": uuid.uuid4().hex,
        "verified_by": principal.verified_by,
        "groups": sorted(principal.groups),
    }
    optional = {"sub": principal.subject, "via": principal.via}
    return jwt.encode(claims | {name: value for name, value in optional.items() if value}, key, _ALGORITHM)


def read_principal(key: str | bytes, token: str, audience: str) -> Principal:
    """The principal that the token names. It has the role of a user, whatever the caller's own roles are."""
    try:
        claims = jwt.decode(
            token,
            key,
            [_ALGORITHM],
            audience=audience,
            issuer=_ISSUER,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["iss", "aud", "iat", "exp", "verified_by", "groups"]},
        )
        return Principal(
            claims["verified_by"], claims.get("sub"), frozenset(map(str, claims["groups"])), via=claims.get("via")
        )
    except jwt.ExpiredSignatureError:
        raise PrincipalTokenError("it has expired, or the clocks differ") from None
    except jwt.InvalidAudienceError:
        raise PrincipalTokenError("it is for another server") from None
    except (jwt.PyJWTError, TypeError):
        raise PrincipalTokenError("it was not signed with the key of this server") from None
