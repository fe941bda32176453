"""A browser signs in at a server with a key: through HTTP, with the routes and the middleware of the supervisor."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.a2a_common.server.browser_sessions import BrowserSessions
from ai_platform_engineering.utils.a2a_common.server.sign_in import SessionRoutes
from ai_platform_engineering.utils.a2a_common.server.sign_in_attempts import FREE_ATTEMPTS
from tests.oauth_issuer import issuing
from tests.servers import serving as serving_app
from tests.utils.a2a_common.serving import Served, message_0_3, serving

KEY = "correct-horse-battery"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message_0_3("hello")}
NOT_REQUIRED = {
    "required": False,
    "signed_in": False,
    "subject": None,
    "name": None,
    "groups": [],
    "csrf_token": None,
    "methods": [],
    "terminal": None,
}
SIGNED_OUT = NOT_REQUIRED | {"required": True, "methods": ["key"]}


@asynccontextmanager
async def browser(**environ: str) -> AsyncIterator[Served]:
    """The server and, as its HTTP client, a browser: it keeps cookies."""
    routes = tuple(SessionRoutes(load_settings(environ, None)).routes())
    async with serving(extra_routes=routes, **environ) as served:
        yield served


async def sign_in(served: Served, key: Any = KEY) -> httpx.Response:
    return await served.http.post(f"{served.url}/session", json={"key": key})


async def session(served: Served) -> dict[str, Any]:
    answer = await served.http.get(f"{served.url}/session")
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    found: dict[str, Any] = answer.json()
    return found


async def test_without_a_key_no_sign_in_is_required() -> None:
    async with browser() as served:
        assert await session(served) == NOT_REQUIRED
        refused = await sign_in(served)
        assert (refused.status_code, refused.json()["error"]) == (404, "not_found")
        assert (await served.http.delete(f"{served.url}/session")).status_code == 204
        assert (await served.http.post(served.url, json=CALL)).json()["result"]["kind"] == "task"


async def test_a_browser_signs_in_asks_and_signs_out() -> None:
    async with browser(A2A_AUTH_SHARED_KEY=KEY) as served:
        assert await session(served) == SIGNED_OUT
        assert (await served.http.get(f"{served.url}/tools")).status_code == 401

        answer = await sign_in(served)
        assert answer.status_code == 200
        assert KEY not in str(answer.headers) + answer.text
        csrf = answer.json()["csrf_token"]
        assert answer.json() == SIGNED_OUT | {"signed_in": True, "subject": "key", "csrf_token": csrf}
        assert await session(served) == answer.json()

        assert (await served.http.get(f"{served.url}/tools")).status_code == 200
        asked = await served.http.post(served.url, json=CALL, headers={"X-CSRF-Token": csrf})
        assert asked.json()["result"]["status"]["state"] == "completed"

        left = await served.http.delete(f"{served.url}/session", headers={"X-CSRF-Token": csrf})
        assert (left.status_code, left.content) == (204, b"")
        assert not served.http.cookies
        assert await session(served) == SIGNED_OUT
        assert (await served.http.get(f"{served.url}/tools")).status_code == 401


@pytest.mark.parametrize("token", [None, "", "wrong", "ü"])
async def test_changing_requests_of_a_session_need_its_token(token: str | None) -> None:
    headers = {} if token is None else {"X-CSRF-Token": token.encode()}
    async with browser(A2A_AUTH_SHARED_KEY=KEY) as served:
        await sign_in(served)
        for method, path in (("POST", ""), ("POST", "/message:send"), ("DELETE", "/session"), ("PUT", "/nothing")):
            refused = await served.http.request(method, served.url + path, json=CALL, headers=headers)
            assert refused.status_code == 403, path
            assert refused.json()["error"] == "csrf"
            assert "X-CSRF-Token" in refused.json()["message"]
        assert (await session(served))["signed_in"]
        # A person who signs in again has no token yet.
        assert (await sign_in(served)).status_code == 200


async def test_a_bearer_needs_no_token_and_takes_precedence() -> None:
    async with browser(A2A_AUTH_SHARED_KEY=KEY) as served:
        await sign_in(served)
        allowed = await served.http.post(served.url, json=CALL, headers={"Authorization": f"Bearer {KEY}"})
        assert allowed.status_code == 200
        refused = await served.http.get(f"{served.url}/tools", headers={"Authorization": "Bearer wrong"})
        assert refused.status_code == 401


async def test_another_process_with_the_same_key_accepts_the_session() -> None:
    async with browser(A2A_AUTH_SHARED_KEY=KEY) as one, browser(A2A_AUTH_SHARED_KEY=KEY) as other:
        csrf = (await sign_in(one)).json()["csrf_token"]
        other.http.cookies = one.http.cookies
        assert (await session(other))["csrf_token"] == csrf
        asked = await other.http.post(other.url, json=CALL, headers={"X-CSRF-Token": csrf})
        assert asked.status_code == 200
    async with browser(A2A_AUTH_SHARED_KEY="another-key-than-before") as rotated:
        rotated.http.cookies = one.http.cookies
        assert await session(rotated) == SIGNED_OUT


async def test_a_session_ends_with_its_key_and_has_the_roles_of_it(tmp_path: Path) -> None:
    secret = {"SESSION_SECRET": "a-secret-of-the-replicas", "DATA_DIR": str(tmp_path)}
    keys, other = f"ops:admin:{KEY}", "ci:user:another-key-than-that"
    async with browser(A2A_AUTH_KEYS=f"{keys},{other}", **secret) as served:
        assert (await sign_in(served)).status_code == 200
    for changed, is_signed_in in ((f"{keys},{other}", True), (other, False), (f"{other},ops:admin:{KEY}-2", False)):
        async with browser(A2A_AUTH_KEYS=changed, **secret) as later:
            later.http.cookies = served.http.cookies
            assert (await session(later))["signed_in"] is is_signed_in, changed
    demoted = BrowserSessions("secret", secure=False, holders={KEY: Principal.with_key("ops", "user")})
    began = BrowserSessions("secret", secure=False, holders={KEY: Principal.with_key("ops", "admin")})
    found = demoted.read({began.cookie: began.begin(Principal.with_key("ops", "admin")).token})
    assert found is not None
    assert not found.caller.is_admin


async def test_the_cookie_is_secure_where_the_public_address_is() -> None:
    public = "https://tools.example.com/platform/"
    async with browser(A2A_AUTH_SHARED_KEY=KEY, A2A_PUBLIC_URL=public) as served:
        cookie = (await sign_in(served)).headers["set-cookie"]
        assert cookie.startswith("__Host-platform-engineer-session")
        assert {"HttpOnly", "Path=/", "SameSite=strict", "Secure"} <= set(cookie.split("; "))


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"key": 1}', '{"key": null}', '"key"'])
async def test_a_sign_in_without_a_key_is_explained(body: str) -> None:
    async with browser(A2A_AUTH_SHARED_KEY=KEY) as served:
        refused = await served.http.post(f"{served.url}/session", content=body)
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request")


async def test_a_large_body_is_refused() -> None:
    async with browser(A2A_AUTH_SHARED_KEY=KEY) as served:
        assert (await sign_in(served, "x" * 20_000)).status_code == 413


@pytest.mark.parametrize("key", ["", KEY[:-1], f"{KEY}x", "ü", "\ud800", "\0"])
async def test_a_wrong_key_is_refused(key: str, caplog: pytest.LogCaptureFixture) -> None:
    async with browser(A2A_AUTH_SHARED_KEY=KEY) as served:
        with caplog.at_level(logging.DEBUG):
            body = f'{{"key": "{key.encode("unicode_escape").decode()}"}}'.replace("\\x", "\\u00")
            refused = await served.http.post(f"{served.url}/session", content=body)
        assert (refused.status_code, refused.json()) == (
            401,
            {"error": "unauthorized", "message": "The key is not correct."},
        )
        assert "set-cookie" not in refused.headers
        assert KEY[:-1] not in caplog.text


async def test_guesses_are_slowed_down() -> None:
    async with browser(A2A_AUTH_SHARED_KEY=KEY) as served:
        for _ in range(FREE_ATTEMPTS):
            assert (await sign_in(served, "wrong")).status_code == 401
        refused = await sign_in(served)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        assert "Try again in 1 s" in refused.json()["message"]
        # From another address, and with the key as bearer, nothing has changed.
        elsewhere = {"X-Forwarded-For": "203.0.113.9"}
        allowed = await served.http.post(f"{served.url}/session", json={"key": KEY}, headers=elsewhere)
        assert allowed.status_code == 200


async def test_with_an_issuer_alone_a_browser_cannot_sign_in() -> None:
    async with issuing() as issuer, browser(A2A_OAUTH_ISSUER=issuer.url) as served:
        assert await session(served) == SIGNED_OUT | {"methods": []}
        assert (await sign_in(served)).status_code == 404
        # A proxy may sign the browser in and send its token.
        headers = {"Authorization": f"Bearer {issuer.token(sub='ada')}"}
        answer = await served.http.get(f"{served.url}/session", headers=headers)
        assert (answer.json()["signed_in"], answer.json()["subject"]) == (True, "ada")


async def test_the_supervisor_has_sessions_and_agents_have_none(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "A2A_AUTH_SHARED_KEY": KEY, "ENABLE_RAG": "false"}
    async with (
        serving_app(create_app, environ) as supervisor,
        serving_app(partial(create_agent_app, name="netutils"), environ | {"A2A_AGENTS_AUTH_KEY": KEY}) as agent,
        httpx.AsyncClient() as http,
    ):
        elsewhere = {"Origin": "https://evil.example"}
        refused = await http.post(f"{supervisor}/session", json={"key": KEY}, headers=elsewhere)
        assert (refused.status_code, refused.json()["error"]) == (403, "forbidden")
        assert (await http.get(supervisor)).status_code in {200, 404}
        assert (await http.post(f"{supervisor}/session", json={"key": KEY})).status_code == 200
        assert (await http.get(f"{supervisor}/tools")).status_code == 200
        assert (await http.post(f"{agent}/session", json={"key": KEY})).status_code == 401
        assert (await http.get(f"{agent}/tools")).status_code == 401
