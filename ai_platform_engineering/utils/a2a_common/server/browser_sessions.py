"""Sessions of browsers: a signed cookie that scripts cannot read, and a token against request forgery (CSRF).

The server stores nothing. Every replica accepts the cookie, also after a restart, until it expires, the secret changes,
or the key with which it was begun is removed. The cookie is a JSON web token (HS256); its key is derived from the
secret and valid for this purpose only.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final

import jwt
from starlette.responses import Response

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.key_files import KeyFileError, read_or_create_key

logger = logging.getLogger(__name__)

LIFETIME_SECONDS: Final = 12 * 3600
MAX_COOKIE_SIZE: Final = 3_800
"""Browsers ignore a cookie of more than 4,096 bytes, with its name and attributes."""

_KEY_FILE: Final = "session.key"
_NAME: Final = "platform-engineer-session"
_ALGORITHM: Final = "HS256"
_ISSUER: Final = "platform-engineer"
_FINGERPRINT_LENGTH: Final = 16
_LEEWAY_SECONDS: Final = 30
"""By which the clocks of two replicas may differ."""


@dataclass(frozen=True, slots=True)
class BrowserSession:
    """`name` is the person's name at the provider. `token` is the value of the cookie."""

    caller: Principal
    token: str = field(repr=False)
    csrf_token: str = field(repr=False)
    name: str | None = None

    def accepts(self, csrf_token: str) -> bool:
        """Whether the sender has read the token of this session, which pages of other sites cannot."""
        return hmac.compare_digest(csrf_token.encode(), self.csrf_token.encode())


class BrowserSessions:
    """Writes and reads the cookie. `secure`: browsers send it over TLS only.

    `holders` are the principals of the keys with which sessions can begin, by the values of the keys.
    """

    def __init__(
        self,
        key: str,
        *,
        secure: bool,
        holders: Mapping[str, Principal] = MappingProxyType({}),
        lifetime: float = LIFETIME_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._signing_key = _derived(key, "browser session")
        self._csrf_key = _derived(key, "browser session: csrf")
        # Browsers do not separate cookies by port or path prefix, so servers with other keys use other names.
        name = f"{_NAME}-{_derived(key, 'browser session: name').hex()[:8]}"
        self.cookie: Final = f"__Host-{name}" if secure else name
        self._secure = secure
        fingerprint_key = _derived(key, "browser session: keys")
        self._holders = {
            hmac.digest(fingerprint_key, value.encode(), "sha256").hex()[:_FINGERPRINT_LENGTH]: holder
            for value, holder in holders.items()
        }
        self._fingerprints = {holder.owner: fingerprint for fingerprint, holder in self._holders.items()}
        self._lifetime = int(lifetime)
        self._clock = clock

    def begin(self, caller: Principal, name: str | None = None) -> BrowserSession:
        session_id, now = secrets.token_urlsafe(16), int(self._clock())
        claims = {"iss": _ISSUER, "jti": session_id, "iat": now, "exp": now + self._lifetime, "name": name}
        if caller.verified_by == "key":
            claims["key"] = self._fingerprints[caller.owner]
        kept, token = caller, self._signed(caller, claims)
        while len(token) > MAX_COOKIE_SIZE and kept.groups:
            kept = replace(kept, groups=frozenset(sorted(kept.groups)[: len(kept.groups) * 9 // 10]))
            token = self._signed(kept, claims)
        if kept != caller:
            logger.warning(
                "A session cookie has room for %d of the %d groups of a person. Let the provider send only the groups "
                "that are used here.",
                len(kept.groups),
                len(caller.groups),
            )
        return BrowserSession(kept, token, self._csrf_token(session_id), name)

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
        caller = Principal.read(claims["principal"])
        if caller.verified_by == "key":
            # With the roles that the key has now; the session ends with the key.
            holder = self._holders.get(claims.get("key", ""))
            if holder is None:
                return None
            caller = holder
        return BrowserSession(caller, token, self._csrf_token(claims["jti"]), claims.get("name"))

    def write(self, session: BrowserSession, response: Response) -> None:
        response.set_cookie(
            self.cookie,
            session.token,
            max_age=self._lifetime,
            path="/",
            secure=self._secure,
            httponly=True,
            samesite="strict",
        )

    def delete(self, response: Response) -> None:
        response.delete_cookie(self.cookie, path="/", secure=self._secure, httponly=True, samesite="strict")

    def _signed(self, caller: Principal, claims: Mapping[str, Any]) -> str:
        return jwt.encode({**claims, "principal": caller.facts()}, self._signing_key, _ALGORITHM)

    def _csrf_token(self, session_id: str) -> str:
        return hmac.digest(self._csrf_key, session_id.encode(), "sha256").hex()


def session_secret(settings: Settings) -> str:
    """The secret of sessions: `SESSION_SECRET`, else the shared key, else a file in the data directory.

    It contains the issuer: a subject of one issuer is not the person with the same subject at another.
    Raises `SettingsError` where other supervisors, which do not have the file, must accept the sessions.
    """
    secret = _secret(settings)
    return secret if settings.a2a_oauth_issuer is None else f"{secret} {settings.a2a_oauth_issuer}"


def _secret(settings: Settings) -> str:
    if settings.session_secret is not None:
        return settings.session_secret.get_secret_value()
    # A named key is no secret for this: its holder could sign the session of an admin.
    if settings.a2a_auth_shared_key is not None:
        return settings.a2a_auth_shared_key.get_secret_value()
    if settings.event_log == "postgres":
        raise SettingsError(
            "EVENT_LOG=postgres without A2A_AUTH_SHARED_KEY needs SESSION_SECRET: supervisors that share their work "
            "must accept each other's sessions of browsers. Set it to the same random value for all of them."
        )
    try:
        return read_or_create_key(settings.data_dir / _KEY_FILE).hex()
    except KeyFileError as error:
        raise SettingsError(f"{error} It signs the sessions of browsers; SESSION_SECRET replaces it.") from None


def _derived(key: str, purpose: str) -> bytes:
    return hmac.digest(key.encode(), purpose.encode(), "sha256")
