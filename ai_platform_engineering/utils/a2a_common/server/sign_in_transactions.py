"""The sign-in of a browser at a provider, between its start and its callback: a signed cookie for ten minutes.

The server stores nothing, so any replica can finish what another one has started. State, nonce and code verifier are
derived from the id in the cookie and a secret, and are not in the cookie.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from starlette.responses import Response

LIFETIME_SECONDS: Final = 600

_NAME: Final = "platform-engineer-sign-in"
_ALGORITHM: Final = "HS256"
_ISSUER: Final = "platform-engineer"
_CLAIMS: Final = ("iss", "jti", "place", "exp")


@dataclass(frozen=True, slots=True)
class Transaction:
    """`place` is the fragment of the page to return to. `token` is the value of the cookie."""

    place: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    token: str = field(repr=False)

    @property
    def challenge(self) -> str:
        """The code challenge of PKCE, with the method S256."""
        return _encoded(hashlib.sha256(self.verifier.encode()).digest())

    def accepts(self, state: str) -> bool:
        return hmac.compare_digest(state.encode(errors="replace"), self.state.encode())


class SignInTransactions:
    """Writes and reads the cookie. `secure`: browsers send it over TLS only."""

    def __init__(self, secret: bytes, *, secure: bool, clock: Callable[[], float] = time.time) -> None:
        self._secret = hmac.digest(secret, b"browser sign-in", "sha256")
        # Browsers do not separate cookies by port or path prefix, so servers with other secrets use other names.
        name = f"{_NAME}-{hmac.digest(self._secret, b'name', 'sha256').hex()[:8]}"
        self.cookie: Final = f"__Host-{name}" if secure else name
        self._secure = secure
        self._clock = clock

    def begin(self, place: str) -> Transaction:
        claims = {
            "iss": _ISSUER,
            "jti": secrets.token_urlsafe(16),
            "place": place,
            "exp": int(self._clock()) + LIFETIME_SECONDS,
        }
        return self._transaction(claims, jwt.encode(claims, self._secret, _ALGORITHM))

    def read(self, cookies: Mapping[str, str]) -> Transaction | None:
        """The transaction of a request with these cookies; None if there is none, or it has expired."""
        token = cookies.get(self.cookie, "")
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self._secret,
                [_ALGORITHM],
                # The time is compared below, with the clock.
                options={"require": [*_CLAIMS], "verify_exp": False},
                issuer=_ISSUER,
            )
        except jwt.PyJWTError:
            return None
        return self._transaction(claims, token) if self._clock() < claims["exp"] else None

    def write(self, transaction: Transaction, response: Response) -> None:
        # Lax: the browser comes back with a link of the provider's site.
        response.set_cookie(
            self.cookie,
            transaction.token,
            max_age=LIFETIME_SECONDS,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="lax",
        )

    def delete(self, response: Response) -> None:
        response.delete_cookie(self.cookie, path="/", secure=self._secure, httponly=True, samesite="lax")

    def _transaction(self, claims: Mapping[str, Any], token: str) -> Transaction:
        state, nonce, verifier = (
            _encoded(hmac.digest(self._secret, f"{purpose} {claims['jti']}".encode(), "sha256"))
            for purpose in ("state", "nonce", "verifier")
        )
        return Transaction(claims["place"], state, nonce, verifier, token)


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
