"""Sessions of browsers: a signed cookie that scripts cannot read, and a token against request forgery (CSRF).

The server stores nothing. Every replica accepts the cookie, also after a restart, until it expires or the shared key
changes. The cookie is a JSON web token (HS256); its key is derived from the shared key and valid for this purpose only.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from starlette.responses import Response

from ai_platform_engineering.identity.principal import Principal

LIFETIME_SECONDS: Final = 12 * 3600

_NAME: Final = "platform-engineer-session"
_ALGORITHM: Final = "HS256"
_ISSUER: Final = "platform-engineer"
# The times are compared with the clock of the sessions.
_OPTIONS: Final[Any] = {"require": ["iss", "jti", "principal", "iat", "exp"], "verify_exp": False, "verify_iat": False}
_LEEWAY_SECONDS: Final = 30
"""By which the clocks of two replicas may differ."""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """`token` is the value of the cookie."""

    caller: Principal
    token: str = field(repr=False)
    csrf_token: str = field(repr=False)

    def accepts(self, csrf_token: str) -> bool:
        """Whether the sender has read the token of this session, which pages of other sites cannot."""
        return hmac.compare_digest(csrf_token.encode(), self.csrf_token.encode())


class BrowserSessions:
    """Writes and reads the cookie. `secure`: browsers send it over TLS only."""

    def __init__(self, key: str, *, secure: bool, clock: Callable[[], float] = time.time) -> None:
        self._signing_key = _derived(key, "browser session")
        self._csrf_key = _derived(key, "browser session: csrf")
        # Browsers do not separate cookies by port or path prefix, so servers with other keys use other names.
        name = f"{_NAME}-{_derived(key, 'browser session: name').hex()[:8]}"
        self.cookie: Final = f"__Host-{name}" if secure else name
        self._secure = secure
        self._clock = clock

    def begin(self, caller: Principal) -> BrowserSession:
        session_id, now = secrets.token_urlsafe(16), int(self._clock())
        claims = {
            "iss": _ISSUER,
            "jti": session_id,
            "principal": caller.facts(),
            "iat": now,
            "exp": now + LIFETIME_SECONDS,
        }
        token = jwt.encode(claims, self._signing_key, _ALGORITHM)
        return BrowserSession(caller, token, self._csrf_token(session_id))

    def read(self, cookies: Mapping[str, str]) -> BrowserSession | None:
        """The session of a request with these cookies; None if there is none, or it has ended."""
        token = cookies.get(self.cookie, "")
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self._signing_key,
                [_ALGORITHM],
                # The times are compared below, with the clock.
                options={
                    "require": ["iss", "jti", "principal", "iat", "exp"],
                    "verify_exp": False,
                    "verify_iat": False,
                },
                issuer=_ISSUER,
            )
        except jwt.PyJWTError:
            return None
        if not claims["iat"] - _LEEWAY_SECONDS <= self._clock() < claims["exp"]:
            return None
        return BrowserSession(Principal.read(claims["principal"]), token, self._csrf_token(claims["jti"]))

    def write(self, session: BrowserSession, response: Response) -> None:
        response.set_cookie(
            self.cookie,
            session.token,
            max_age=LIFETIME_SECONDS,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="strict",
        )

    def delete(self, response: Response) -> None:
        response.delete_cookie(self.cookie, path="/", secure=self._secure, httponly=True, samesite="strict")

    def _csrf_token(self, session_id: str) -> str:
        return hmac.digest(self._csrf_key, session_id.encode(), "sha256").hex()


def _derived(key: str, purpose: str) -> bytes:
    return hmac.digest(key.encode(), purpose.encode(), "sha256")
