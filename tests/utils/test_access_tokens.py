"""How clients get their access tokens, at a real token endpoint, and what they do with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ai_platform_engineering.settings import Settings, SettingsError, load_settings
from ai_platform_engineering.utils.access_tokens import (
    AccessTokenError,
    AccessTokenRefusedError,
    AccessTokens,
    Grant,
    OwnBearer,
)
from ai_platform_engineering.utils.supervisor_auth import SupervisorAuth
from tests.oauth_issuer import CLIENT, SECRET, TestIssuer, issuing
from tests.utils.a2a_common.serving import listening

HEADER_SAFE = "s3cret:+&%"


def settings_for(issuer: TestIssuer, **more: str) -> Settings:
    environ = {
        "A2A_OAUTH_GRANT_URL": f"{issuer.url}/token",
        "A2A_OAUTH_CLIENT_ID": CLIENT,
        "A2A_OAUTH_CLIENT_SECRET": HEADER_SAFE,
    }
    return load_settings(environ | more, None)


def grant_of(issuer: TestIssuer, secret: str = SECRET, **more: str) -> Grant:
    return Grant(f"{issuer.url}/token", CLIENT, secret, **more)


class Clock:
    now = 50.0

    def __call__(self) -> float:
        return self.now


async def test_one_token_serves_many_until_shortly_before_it_expires() -> None:
    clock = Clock()
    async with issuing() as issuer:
        tokens = AccessTokens(grant_of(issuer, scope="a2a", audience="us"), clock)
        first = set(await asyncio.gather(*(tokens.token() for _ in range(20))))
        assert len(first) == 1
        assert issuer.forms == [{"grant_type": "client_credentials", "scope": "a2a", "audience": "us"}]
        clock.now += 3569
        assert {await tokens.token()} == first
        clock.now += 1
        assert {await tokens.token()} != first
        assert issuer.calls["token"] == 2


@pytest.mark.parametrize(("expires_in", "good_for"), [(20, 10), ("600", 570), (None, 270), ("soon", 270)])
async def test_whatever_the_server_says_of_its_end(expires_in: object, good_for: int) -> None:
    clock = Clock()
    async with issuing(TestIssuer(expires_in=expires_in)) as issuer:
        tokens = AccessTokens(grant_of(issuer), clock)
        await tokens.token()
        clock.now += good_for - 1
        await tokens.token()
        assert issuer.calls["token"] == 1
        clock.now += 1
        await tokens.token()
        assert issuer.calls["token"] == 2


async def test_a_caller_that_gives_up_does_not_cancel_the_fetch_of_others() -> None:
    async with issuing() as issuer:
        tokens = AccessTokens(grant_of(issuer))
        canceled, waiting = asyncio.create_task(tokens.token()), asyncio.create_task(tokens.token())
        await asyncio.sleep(0)
        canceled.cancel()
        assert await waiting
        assert issuer.calls["token"] == 1


async def test_a_server_that_wants_the_secret_as_a_field_gets_it_there() -> None:
    async with issuing(TestIssuer(secret_in="body")) as issuer:
        tokens = AccessTokens(grant_of(issuer))
        tokens.forget(await tokens.token())
        await tokens.token()
        assert issuer.calls["token"] == 3, "it is found out once"


@pytest.mark.parametrize(
    ("grant", "named", "code"),
    [
        ({"secret": "guessed"}, "A2A_OAUTH_CLIENT_ID and A2A_OAUTH_CLIENT_SECRET", "invalid_client"),
        ({"scope": "everything"}, "A2A_OAUTH_SCOPE", "invalid_scope"),
    ],
)
async def test_a_refusal_names_the_setting_and_no_secret(grant: dict[str, str], named: str, code: str) -> None:
    async with issuing() as issuer:
        with pytest.raises(AccessTokenRefusedError) as refused:
            await AccessTokens(grant_of(issuer, **grant)).token()
    sentence = str(refused.value)
    assert named in sentence
    assert code in sentence
    assert not any(secret in sentence for secret in (SECRET, "guessed", issuer.url))
    assert SECRET not in repr(grant_of(issuer))


async def test_temporary_and_permanent_refusals_differ() -> None:
    async with issuing(TestIssuer(down=True)) as issuer:
        tokens = AccessTokens(grant_of(issuer))
        with pytest.raises(AccessTokenError, match="at the moment \\(HTTP 503\\)") as passing:
            await tokens.token()
        issuer.down = False
        assert await tokens.token()
    assert not isinstance(passing.value, AccessTokenRefusedError)
    with pytest.raises(AccessTokenError, match="connection refused") as passing:
        await AccessTokens(Grant("http://127.0.0.1:9/token", "id", "secret")).token()
    assert not isinstance(passing.value, AccessTokenRefusedError)


@pytest.mark.parametrize("path", ["/nowhere", "/keys"])
async def test_an_address_that_gives_no_tokens_is_a_wrong_setting(path: str) -> None:
    async with issuing() as issuer:
        with pytest.raises(AccessTokenRefusedError, match="A2A_OAUTH_GRANT_URL"):
            await AccessTokens(Grant(issuer.url + path, CLIENT, SECRET)).token()


def test_half_of_the_settings_is_none_at_all() -> None:
    assert Grant.of(load_settings({}, None)) is None
    for half in ({"A2A_OAUTH_GRANT_URL": "https://issuer.example/token"}, {"A2A_OAUTH_CLIENT_ID": "bot"}):
        with pytest.raises(SettingsError, match="belong together"):
            SupervisorAuth(load_settings(half, None))


@asynccontextmanager
async def remembering(answers: list[int]) -> AsyncIterator[tuple[httpx.URL, list[str]]]:
    """A server that answers with these codes, then with 200, and keeps what it was shown."""
    shown: list[str] = []

    async def page(request: Request) -> Response:
        shown.append(request.headers.get("authorization", ""))
        return Response(await request.body(), status_code=answers.pop(0) if answers else 200)

    async with listening(Starlette(routes=[Route("/", page, methods=["POST"])])) as url:
        yield httpx.URL(url), shown


async def test_a_token_that_is_refused_is_replaced_once() -> None:
    async with issuing() as issuer, remembering([401]) as (url, shown):
        grant = {"A2A_OAUTH_CLIENT_SECRET": HEADER_SAFE}
        issuer.secret = HEADER_SAFE
        auth = SupervisorAuth(settings_for(issuer, **grant, A2A_AUTH_SHARED_KEY="shared-by-everybody"))
        async with httpx.AsyncClient(auth=auth) as http:
            answer = await http.post(url, content=b"hello")
            assert (answer.status_code, answer.text) == (200, "hello")
            await http.post(url)
        first, second, third = shown
        assert first != second == third
        assert issuer.calls["token"] == 2
    async with issuing() as issuer, remembering([401] * 9) as (url, shown):
        issuer.secret = HEADER_SAFE
        async with httpx.AsyncClient(auth=SupervisorAuth(settings_for(issuer))) as http:
            assert (await http.post(url)).status_code == 401
        assert len(shown) == 2


async def test_without_a_grant_the_key_is_sent_or_nothing() -> None:
    async with remembering([]) as (url, shown):
        for environ in ({"A2A_AUTH_SHARED_KEY": "shared-by-everybody"}, {}):
            async with httpx.AsyncClient(auth=SupervisorAuth(load_settings(environ, None))) as http:
                await http.post(url)
    assert shown == ["Bearer shared-by-everybody", ""]


async def test_agents_get_their_key_else_the_callers_token_else_one_of_the_supervisors_own() -> None:
    own = {"A2A_AUTH_SHARED_KEY": "key-of-the-supervisor"}
    async with issuing() as issuer:
        issuer.secret = HEADER_SAFE
        for settings, key in (
            (settings_for(issuer, **own, A2A_AGENTS_AUTH_KEY="key-of-the-agents"), "key-of-the-agents"),
            (settings_for(issuer, **own, A2A_AGENTS_SHARE_KEY="true"), "key-of-the-supervisor"),
            (
                settings_for(
                    issuer, **own, A2A_AGENTS_AUTH_KEY="key-of-the-agents", A2A_AGENT_KEYS="jira:key-of-the-jira-agent"
                ),
                "key-of-the-jira-agent",
            ),
        ):
            assert [await OwnBearer(settings).token("jira", of_caller) for of_caller in (None, "token")] == [key, key]
        assert await OwnBearer(settings_for(issuer, **own)).token("jira", "token") == "token"
        assert not issuer.calls
        bearer = OwnBearer(settings_for(issuer, **own))
        assert (
            await bearer.token("jira", "key-of-the-supervisor") == await bearer.token("jira") != "key-of-the-supervisor"
        )
        token = await OwnBearer(settings_for(issuer)).token("jira")
        assert token is not None
        assert token.startswith("ey")
    assert await OwnBearer(load_settings({}, None)).token("jira") is None
