from __future__ import annotations

import base64
import json
from http.cookies import SimpleCookie
from pathlib import Path

import jwt
import pytest
from starlette.responses import Response

from ai_platform_engineering.identity.principal import KEY_HOLDER, Principal
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.a2a_common.server.browser_sessions import (
    LIFETIME_SECONDS,
    MAX_COOKIE_SIZE,
    BrowserSession,
    BrowserSessions,
    session_secret,
)
from ai_platform_engineering.utils.users import User, sign_user

KEY = "correct-horse-battery"


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def sessions(key: str = KEY, *, secure: bool = False, clock: Clock | None = None) -> BrowserSessions:
    return BrowserSessions(key, secure=secure, holders={KEY: KEY_HOLDER}, clock=clock or Clock())


def read(reader: BrowserSessions, token: str) -> BrowserSession | None:
    return reader.read({reader.cookie: token})


def test_another_replica_reads_the_session() -> None:
    session = sessions().begin(KEY_HOLDER)
    assert read(sessions(), session.token) == session
    assert session.caller == KEY_HOLDER
    assert KEY not in session.token
    assert session.token not in repr(session)


def test_each_session_has_its_own_csrf_token() -> None:
    one, other = sessions().begin(KEY_HOLDER), sessions().begin(KEY_HOLDER)
    assert one.accepts(one.csrf_token)
    for wrong in (other.csrf_token, one.csrf_token[:-1], one.token, "", "ü"):
        assert not one.accepts(wrong)


def test_another_key_ends_all_sessions() -> None:
    other = sessions(f"{KEY}-2")
    assert other.cookie != sessions().cookie
    assert read(other, sessions().begin(KEY_HOLDER).token) is None


def test_a_session_ends_after_its_lifetime() -> None:
    clock = Clock()
    here = sessions(clock=clock)
    token = here.begin(KEY_HOLDER).token
    clock.now += LIFETIME_SECONDS - 1
    assert read(here, token) is not None
    clock.now += 1
    assert read(here, token) is None
    clock.now -= LIFETIME_SECONDS + 60
    assert read(here, token) is None


def test_the_lifetime_can_be_set() -> None:
    clock = Clock()
    here = BrowserSessions(KEY, secure=False, holders={KEY: KEY_HOLDER}, lifetime=60, clock=clock)
    token = here.begin(KEY_HOLDER).token
    clock.now += 60
    assert read(here, token) is None


def test_a_cookie_is_never_too_large_for_browsers(caplog: pytest.LogCaptureFixture) -> None:
    many = frozenset(f"00000000-0000-0000-0000-{number:012}" for number in range(500))
    session = sessions().begin(Principal("token", "ada", many, frozenset({"user", "admin"})), "Ada")
    assert len(session.token) <= MAX_COOKIE_SIZE
    assert 30 < len(session.caller.groups) < 500
    assert session.caller.is_admin
    assert f"{len(session.caller.groups)} of the 500 groups" in caplog.text
    assert read(sessions(), session.token) == session


def unsigned(token: str) -> str:
    header = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "JWT"}).encode()).rstrip(b"=").decode()
    return f"{header}.{token.split('.')[1]}."


def test_other_tokens_are_no_session() -> None:
    token = sessions().begin(KEY_HOLDER).token
    head, claims, signature = token.split(".")
    changed = jwt.encode(jwt.decode(token, options={"verify_signature": False}) | {"exp": 2**40}, "k" * 32, "HS256")
    others = [
        "",
        "nonsense",
        "ü",
        unsigned(token),
        f"{head}.{changed.split('.')[1]}.{signature}",
        f"{head}.{claims}.",
        jwt.encode(jwt.decode(token, options={"verify_signature": False}), KEY.ljust(32, "="), "HS256"),
        sign_user(KEY, User("key"), message_id="m", now=Clock.now),
    ]
    assert [other for other in others if read(sessions(), other) is not None] == []
    assert sessions().read({}) is None
    assert sessions().read({"platform-engineer-session": token}) is None


@pytest.mark.parametrize("secure", [False, True])
def test_scripts_and_other_sites_do_not_get_the_cookie(secure: bool) -> None:
    here = sessions(secure=secure)
    session, signed_in, signed_out = here.begin(KEY_HOLDER), Response(), Response()
    here.write(session, signed_in)
    here.delete(signed_out)
    for response, value, age in ((signed_in, session.token, LIFETIME_SECONDS), (signed_out, "", 0)):
        (cookie,) = SimpleCookie(response.headers["set-cookie"]).values()
        assert (cookie.key, cookie.value) == (here.cookie, value)
        assert (cookie["path"], cookie["samesite"], cookie["max-age"]) == ("/", "strict", str(age))
        assert cookie["httponly"] is True
        assert bool(cookie["secure"]) is secure
        assert cookie["domain"] == ""
    assert here.cookie.startswith("__Host-") is secure


def test_the_holder_of_a_named_key_cannot_sign_sessions(tmp_path: Path) -> None:
    environ = {"A2A_AUTH_KEYS": f"ci:user:{KEY}", "DATA_DIR": str(tmp_path)}
    assert KEY not in session_secret(load_settings(environ, None))
    assert session_secret(load_settings(environ | {"A2A_AUTH_SHARED_KEY": "the-key-of-admins"}, None)) == (
        "the-key-of-admins"
    )
