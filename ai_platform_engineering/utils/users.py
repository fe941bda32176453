"""Users: who asks, as a client that knows the key vouches for it, for one message and five minutes.

The token travels as message metadata, `user_token`. It is a JSON web token, HS256, whose key is made from the one that
was set, so that it is good for nothing else.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from typing import Final

import jwt

from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.errors import ReadableError

MAX_LENGTH: Final = 200
"""Characters of an id or a name."""

_ALGORITHM: Final = "HS256"
_ISSUER: Final = "platform-engineer"
_SECONDS: Final = 300
_LEEWAY_SECONDS: Final = 30


class UserTokenError(ReadableError):
    """A token says who asks, but cannot be believed; the text says why."""


@dataclass(frozen=True, slots=True)
class User:
    """Somebody. The id says where it is one: `slack:T1/U1`."""

    id: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.id} ({self.name})" if self.name else self.id


def signing_key(settings: Settings) -> str | None:
    """The key that clients and supervisor share for this; None where nobody signs."""
    key = settings.user_signing_key or settings.a2a_auth_shared_key
    return key.get_secret_value() if key else None


def sign_user(key: str, user: User, *, message_id: str, now: float) -> str:
    """A token that says that `user` sends the message `message_id`, `now` in seconds since 1970."""
    claims = {"iss": _ISSUER, "sub": user.id, "jti": message_id, "iat": int(now), "exp": int(now) + _SECONDS}
    return jwt.encode(claims | ({"name": user.name} if user.name else {}), _made_from(key), _ALGORITHM)


def read_user(key: str, token: str, *, message_id: str, now: float) -> User:
    """Who sends the message `message_id`; raises `UserTokenError` where the token does not prove it."""
    try:
        claims = jwt.decode(
            token,
            _made_from(key),
            [_ALGORITHM],
            # The times are compared below, with the clock of whoever asks.
            options={"require": ["iss", "sub", "jti", "exp", "iat"], "verify_exp": False, "verify_iat": False},
            issuer=_ISSUER,
        )
    except jwt.PyJWTError:
        raise UserTokenError("It was not signed with the key that is set here.") from None
    if claims["jti"] != message_id:
        raise UserTokenError("It was made for another message.")
    begins, ends = _number(claims["iat"]), _number(claims["exp"])
    if not begins - _LEEWAY_SECONDS <= now < ends + _LEEWAY_SECONDS or ends - begins > _SECONDS:
        raise UserTokenError("It has expired, or the clocks differ.")
    user, name = claims["sub"], claims.get("name", "")
    if not user or not isinstance(name, str) or max(len(user), len(name)) > MAX_LENGTH:
        raise UserTokenError(f"It needs the id and the name of a user, at most {MAX_LENGTH} characters each.")
    return User(user, name)


def _number(value: object) -> float:
    return value if isinstance(value, int | float) else 0.0


def _made_from(key: str) -> bytes:
    return hmac.digest(key.encode(), b"user", "sha256")
