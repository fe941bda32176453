"""User tokens: a client with the signing key states which user sends a message. A token is valid for five minutes.

The token is sent as message metadata, `user_token`. It is a JSON web token (HS256). Its key is derived from the
configured one, so that it is valid for this purpose only. It covers the content of the message by a digest, so it is
worth nothing with another content.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

import jwt

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.errors import ReadableError

MAX_LENGTH: Final = 200
"""Characters of an id, a name or a group."""
MAX_GROUPS: Final = 100

_ALGORITHM: Final = "HS256"
_ISSUER: Final = "platform-engineer"
_LIFETIME_SECONDS: Final = 300
_LEEWAY_SECONDS: Final = 30


class UserTokenError(ReadableError):
    """A user token is not valid; the text says why."""


@dataclass(frozen=True, slots=True)
class User:
    """A person. The id begins with the surface, for example `slack:T1/U1`.

    `groups` are those that the person is in. A conversation that begins with the message is shared with `shared_with`.
    """

    id: str
    name: str = ""
    groups: frozenset[str] = frozenset()
    shared_with: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.id} ({self.name})" if self.name else self.id


def signing_key(settings: Settings) -> str | None:
    """The key that clients and supervisor share to sign users; None if none is configured."""
    key = settings.user_signing_key or settings.supervisor_key or settings.a2a_auth_shared_key
    return key.get_secret_value() if key else None


def sign_user(key: str, user: User, *, message_id: str, now: float, digest: str = "") -> str:
    """A token which states that `user` sends the message `message_id` with the content of `digest`. `now` is in seconds
    since 1970."""
    claims = {"iss": _ISSUER, "sub": user.id, "jti": message_id, "iat": int(now), "exp": int(now) + _LIFETIME_SECONDS}
    more = {
        "name": user.name,
        "groups": sorted(user.groups),
        "shared_with": sorted(user.shared_with),
        "digest": digest,
    }
    return jwt.encode(claims | {name: value for name, value in more.items() if value}, _derived(key), _ALGORITHM)


def read_user(key: str, token: str, *, message_id: str, now: float, digest: str = "") -> User:
    """The user who sends the message `message_id` with the content of `digest`. Raises `UserTokenError` if the token is
    not valid."""
    try:
        claims = jwt.decode(
            token,
            _derived(key),
            [_ALGORITHM],
            # The times are compared below, with `now`.
            options={"require": ["iss", "sub", "jti", "exp", "iat"], "verify_exp": False, "verify_iat": False},
            issuer=_ISSUER,
        )
    except jwt.PyJWTError:
        raise UserTokenError("The token was not signed with the key of this server.") from None
    if claims["jti"] != message_id:
        raise UserTokenError("The token belongs to another message.")
    if claims.get("digest", "") != digest:
        raise UserTokenError("The token does not cover this content: its digest must be that of the message.")
    begins, ends = _number(claims["iat"]), _number(claims["exp"])
    if not begins - _LEEWAY_SECONDS <= now < ends + _LEEWAY_SECONDS or ends - begins > _LIFETIME_SECONDS:
        raise UserTokenError("The token has expired, or the clocks differ.")
    user, name = claims["sub"], claims.get("name", "")
    if not user or not isinstance(name, str) or max(len(user), len(name)) > MAX_LENGTH:
        raise UserTokenError(f"The token needs the id and the name of a user, at most {MAX_LENGTH} characters each.")
    return User(user, name, _groups(claims.get("groups")), _groups(claims.get("shared_with")))


def _groups(value: object) -> frozenset[str]:
    groups = value if isinstance(value, list) else []
    if len(groups) > MAX_GROUPS or any(not isinstance(group, str) or len(group) > MAX_LENGTH for group in groups):
        raise UserTokenError(f"The token may name at most {MAX_GROUPS} groups, of {MAX_LENGTH} characters each.")
    return frozenset(groups)


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0


def _derived(key: str) -> bytes:
    return hmac.digest(key.encode(), b"user", "sha256")
