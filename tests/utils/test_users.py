from __future__ import annotations

import hmac

import jwt
import pytest

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.users import User, UserTokenError, read_user, sign_user, signing_key

KEY = "correct-horse-battery"
JANE = User("slack:T1/U1", "Jané")
NOW = 1_800_000_000.0


def test_what_was_signed_is_read() -> None:
    token = sign_user(KEY, JANE, message_id="m-1", now=NOW)
    assert read_user(KEY, token, message_id="m-1", now=NOW + 299) == JANE
    nameless = sign_user(KEY, User("slack:T1/U1"), message_id="m-1", now=NOW)
    assert read_user(KEY, nameless, message_id="m-1", now=NOW) == User("slack:T1/U1")


def test_a_token_covers_one_content() -> None:
    token = sign_user(KEY, JANE, message_id="m-1", now=NOW, digest="d-1")
    assert read_user(KEY, token, message_id="m-1", now=NOW, digest="d-1") == JANE
    for digest in ("d-2", ""):
        with pytest.raises(UserTokenError, match="does not cover this content"):
            read_user(KEY, token, message_id="m-1", now=NOW, digest=digest)


@pytest.mark.parametrize(
    ("key", "message_id", "now", "why"),
    [
        ("another", "m-1", NOW, "not signed with the key"),
        (KEY, "m-2", NOW, "another message"),
        (KEY, "m-1", NOW + 331, "expired"),
        (KEY, "m-1", NOW - 31, "clocks"),
    ],
)
def test_another_key_message_or_time_is_refused(key: str, message_id: str, now: float, why: str) -> None:
    token = sign_user(KEY, JANE, message_id="m-1", now=NOW)
    with pytest.raises(UserTokenError, match=why):
        read_user(key, token, message_id=message_id, now=now)


@pytest.mark.parametrize(
    "change",
    [
        {"exp": NOW + 100_000},
        {"exp": "for ever"},
        {"iat": None},
        {"iss": "another"},
        {"sub": ""},
        {"sub": 7},
        {"sub": "u" * 201},
        {"name": ["Jane"]},
        {"jti": None},
    ],
)
def test_a_token_that_is_not_as_ours_is_refused(change: dict[str, object]) -> None:
    claims = {"iss": "platform-engineer", "sub": "u", "jti": "m-1", "iat": NOW, "exp": NOW + 300} | change
    claims = {name: value for name, value in claims.items() if value is not None}
    token = jwt.encode(claims, hmac.digest(KEY.encode(), b"user", "sha256"), "HS256")
    with pytest.raises(UserTokenError):
        read_user(KEY, token, message_id="m-1", now=NOW)


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "ü.ü.ü", "." * 5000])
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(UserTokenError):
        read_user(KEY, token, message_id="m-1", now=NOW)


def test_a_token_without_a_signature_is_refused() -> None:
    claims = {"iss": "platform-engineer", "sub": "u", "jti": "m-1", "iat": NOW, "exp": NOW + 300}
    with pytest.raises(UserTokenError):
        read_user(KEY, jwt.encode(claims, None, "none"), message_id="m-1", now=NOW)


def test_the_shared_key_signs_where_there_is_no_other() -> None:
    assert signing_key(load_settings({}, None)) is None
    assert signing_key(load_settings({"A2A_AUTH_SHARED_KEY": "shared-by-all-callers"}, None)) == "shared-by-all-callers"
    both = {"A2A_AUTH_SHARED_KEY": "shared-by-all-callers", "USER_SIGNING_KEY": "signing-key-of-the-tests"}
    assert signing_key(load_settings(both, None)) == both["USER_SIGNING_KEY"]
