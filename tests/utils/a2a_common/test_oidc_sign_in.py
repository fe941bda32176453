"""A browser signs in with OpenID Connect: through HTTP, with the routes and the middleware of the supervisor, at a
strict provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from ai_platform_engineering.settings import SettingsError, load_settings
from ai_platform_engineering.utils.a2a_common.server.browser_sessions import session_secret
from ai_platform_engineering.utils.a2a_common.server.sign_in import SessionRoutes
from ai_platform_engineering.utils.a2a_common.server.sign_in_transactions import LIFETIME_SECONDS, SignInTransactions
from tests.oauth_issuer import forged, new_key
from tests.oidc_provider import PAGE, TERMINAL, Client, TestProvider, decide, providing
from tests.utils.a2a_common.serving import Served, message_0_3, serving

SECRET = "a-secret-of-browser-sessions"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message_0_3("hello")}


@asynccontextmanager
async def browser(provider: TestProvider, **environ: str) -> AsyncIterator[Served]:
    """The server and, as its HTTP client, a browser that keeps cookies. The server is registered at the provider."""
    known = {"A2A_OAUTH_ISSUER": provider.url, "OIDC_CLIENT_ID": PAGE, "SESSION_SECRET": SECRET, **environ}
    routes = tuple(SessionRoutes(load_settings(known, None)).routes())
    async with serving(extra_routes=routes, **known) as served:
        base = environ.get("A2A_PUBLIC_URL", f"{served.url}/")
        provider.clients[PAGE].redirect_uris.add(f"{base}session/callback")
        provider.clients[PAGE].post_logout_uris.add(base)
        yield served


async def start(served: Served, place: str = "") -> str:
    """The address at the provider to which the browser is sent."""
    answer = await served.http.get(f"{served.url}/session/start", params={"place": place})
    assert answer.status_code == 303
    assert answer.headers["cache-control"] == "no-store"
    return answer.headers["location"]


async def callback(served: Served, *, accept: bool = True, place: str = "") -> str:
    """The address at the server to which the provider sends the browser back."""
    decided = await decide(served.http, await start(served, place), accept=accept)
    assert decided.status_code == 303, decided.text
    return decided.headers["location"]


async def sign_in(served: Served, place: str = "") -> httpx.Response:
    return await served.http.get(await callback(served, place=place))


async def session(served: Served) -> dict[str, Any]:
    found: dict[str, Any] = (await served.http.get(f"{served.url}/session")).json()
    return found


async def test_a_person_signs_in_asks_and_signs_out() -> None:
    async with providing() as provider, browser(provider, A2A_OAUTH_ADMIN_GROUPS="ops") as served:
        before = await session(served)
        assert (before["required"], before["signed_in"], before["methods"]) == (True, False, ["openid"])

        returned = await sign_in(served, "#/agents")
        assert (returned.status_code, returned.headers["location"]) == (303, "../#/agents")
        found = await session(served)
        assert (found["signed_in"], found["subject"], found["name"]) == (True, "ada-1815", "Ada Lovelace")
        assert (found["groups"], before["groups"]) == (["ops", "sre"], [])
        (cookie,) = served.http.cookies.jar
        assert cookie.name.startswith("platform-engineer-session-")
        assert cookie.has_nonstandard_attr("HttpOnly")
        set_cookies = returned.headers.get_list("set-cookie")
        assert any("SameSite=strict" in each and "Max-Age=43200" in each for each in set_cookies)

        assert (await served.http.post(served.url, json=CALL)).status_code == 403, "the token against forgery is needed"
        headers = {"X-CSRF-Token": found["csrf_token"]}
        asked = await served.http.post(served.url, json=CALL, headers=headers)
        assert asked.json()["result"]["status"]["state"] == "completed"

        left = await served.http.delete(f"{served.url}/session", headers=headers)
        assert not served.http.cookies
        assert (await served.http.get(left.json()["logout_url"])).headers["location"] == f"{served.url}/"
        assert provider.logouts == [{"client_id": PAGE, "post_logout_redirect_uri": f"{served.url}/"}]


async def test_the_request_has_every_protection() -> None:
    async with providing() as provider, browser(provider, OIDC_SCOPES="openid groups") as served:
        one, other = [parse_qs(urlsplit(await start(served)).query) for _ in range(2)]
        assert one["code_challenge_method"] == ["S256"]
        assert one["scope"] == ["openid groups"]
        for name in ("state", "nonce", "code_challenge"):
            assert one[name] != other[name]
        (cookie,) = served.http.cookies.jar
        assert not any(other[name][0] in (cookie.value or "") for name in ("state", "nonce"))


async def test_people_who_begin_at_the_same_time_wait_for_one_fetch() -> None:
    async with providing() as provider, browser(provider) as served:
        sent = await asyncio.gather(*(start(served) for _ in range(5)))
        assert all(address.startswith(f"{provider.url}/authorize?") for address in sent)
        assert provider.calls["metadata"] == 1


async def test_another_replica_finishes_the_sign_in() -> None:
    async with providing() as provider, browser(provider) as one, browser(provider) as other:
        address = await callback(one)
        other.http.cookies = one.http.cookies
        # The proxy in front of both has one address, which is also the redirect URI.
        provider.codes[parse_qs(urlsplit(address).query)["code"][0]].redirect_uri = f"{other.url}/session/callback"
        await other.http.get(address.replace(one.url, other.url))
        assert (await session(other))["subject"] == "ada-1815"


async def test_a_client_with_a_secret_and_groups_of_the_userinfo() -> None:
    clients = {PAGE: Client(secret="s3cret: +&%"), TERMINAL: Client()}
    provider = TestProvider(clients=clients, userinfo_only=frozenset({"groups", "name"}))
    async with providing(provider), browser(provider, OIDC_CLIENT_SECRET="wrong") as served:
        assert (await sign_in(served)).headers["location"] == "../?sign_in=refused"
    clients[PAGE].secret = "s3cret:+&%"
    async with providing(provider), browser(provider, OIDC_CLIENT_SECRET="s3cret:+&%") as served:
        assert (await sign_in(served)).headers["location"] == "../"
        assert (await session(served))["name"] == "Ada Lovelace"
        assert provider.calls["userinfo"] == 1


Alter = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.mark.parametrize(
    ("alter", "why"),
    [
        (lambda claims: claims | {"nonce": "that-of-another-sign-in"}, "belongs to another sign-in"),
        (lambda claims: claims | {"nonce": None}, "belongs to another sign-in"),
        (lambda claims: claims | {"aud": "another-client"}, "another audience"),
        (lambda claims: claims | {"aud": [PAGE, "another-client"]}, "another client"),
        (lambda claims: claims | {"azp": "another-client"}, "another client"),
        (lambda claims: claims | {"iss": "https://elsewhere.example"}, "another issuer"),
        (lambda claims: claims | {"exp": 1}, "has expired"),
        (lambda claims: claims | {"nbf": 4_000_000_000}, "not valid yet"),
        (lambda claims: claims | {"iat": None}, "a claim is missing"),
        (lambda claims: claims | {"sub": None}, "a claim is missing"),
        (lambda claims: claims | {"at_hash": "x"}, "does not belong to the access token"),
    ],
)
async def test_an_id_token_that_is_not_for_this_sign_in_is_refused(
    alter: Alter, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    provider = TestProvider(alter=alter)
    async with providing(provider), browser(provider) as served:
        assert (await sign_in(served)).headers["location"] == "../?sign_in=refused"
        assert why in caplog.text
        assert not (await session(served))["signed_in"]
        assert not served.http.cookies


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
async def test_an_id_token_without_the_signature_of_the_provider_is_refused(algorithm: str) -> None:
    provider = TestProvider()

    def unsigned(client: str, nonce: str, _access: str) -> str:
        claims = provider.claims(**provider.person, aud=client, nonce=nonce)
        public = provider.keys[0].as_pem(private=False)
        return forged({"alg": algorithm, "kid": "k1"}, claims, public if algorithm == "HS256" else b"")

    provider._id_token = unsigned  # type: ignore[method-assign]
    async with providing(provider), browser(provider) as served:
        assert (await sign_in(served)).headers["location"] == "../?sign_in=refused"


async def test_a_rotated_key_is_found_and_a_strange_one_is_not() -> None:
    async with providing() as provider, browser(provider) as served:
        provider.keys = [new_key("RSA", "k2")]
        assert (await sign_in(served)).headers["location"] == "../"
        provider.signer = new_key("RSA", "k2")
        assert (await sign_in(served)).headers["location"] == "../?sign_in=refused"


async def test_a_callback_needs_the_browser_that_began() -> None:
    async with providing() as provider, browser(provider) as served:
        address = await callback(served)
        async with httpx.AsyncClient() as stranger:
            assert (await stranger.get(address)).headers["location"] == "../?sign_in=expired"
        altered = address.replace("state=", "state=x")
        assert (await served.http.get(altered)).headers["location"] == "../?sign_in=expired"
        assert (await served.http.get(address)).headers["location"] == "../?sign_in=expired", "the cookie was deleted"
        assert provider.calls["token"] == 0


async def test_a_code_is_used_once() -> None:
    async with providing() as provider, browser(provider) as served:
        address = await callback(served)
        cookies = httpx.Cookies(served.http.cookies)
        assert (await served.http.get(address)).headers["location"] == "../"
        served.http.cookies = cookies
        assert (await served.http.get(address)).headers["location"] == "../?sign_in=refused"


async def test_the_response_must_come_from_the_provider() -> None:
    async with providing() as provider, browser(provider) as served:
        for altered in ("https%3A%2F%2Felsewhere.example", ""):
            address = await callback(served)
            found = parse_qs(urlsplit(address).query)
            mixed = f"{address.split('?')[0]}?state={found['state'][0]}&code={found['code'][0]}&iss={altered}"
            assert (await served.http.get(mixed)).headers["location"] == "../?sign_in=refused"


async def test_a_person_may_decline() -> None:
    async with providing() as provider, browser(provider) as served:
        address = await callback(served, accept=False, place="#/c/5f0c")
        assert (await served.http.get(address)).headers["location"] == "../?sign_in=declined#/c/5f0c"


@pytest.mark.parametrize(
    "place",
    ["https://evil.example", "//evil.example", "/\\evil.example", "#/a\r\nSet-Cookie: x=y", "javascript:x", "#"],
)
async def test_no_other_address_can_be_chosen_to_return_to(place: str) -> None:
    async with providing() as provider, browser(provider) as served:
        assert (await sign_in(served, place)).headers["location"] == "../"


@pytest.mark.long
async def test_a_provider_that_is_down_is_reported_and_tried_again() -> None:
    provider = TestProvider(down=True)
    async with providing(provider), browser(provider) as served:
        assert await start(served, "#/agents") == "../?sign_in=unavailable#/agents"
        address = ""
        provider.down = False
        while not address.startswith(provider.url):
            address = await start(served)


async def test_the_public_address_is_the_redirect_uri() -> None:
    public = "https://tools.example.com/platform/"
    async with providing() as provider, browser(provider, A2A_PUBLIC_URL=public) as served:
        sent = await served.http.get(f"{served.url}/session/start")
        cookie = sent.headers["set-cookie"]
        assert cookie.startswith("__Host-platform-engineer-sign-in-")
        assert {"HttpOnly", "Path=/", "SameSite=lax", "Secure", "Max-Age=600"} <= set(cookie.split("; "))
        decided = await decide(served.http, sent.headers["location"])
        address = decided.headers["location"]
        assert address.startswith(f"{public}session/callback?")
        headers = {"Cookie": cookie.split(";")[0]}
        returned = await served.http.get(f"{served.url}/session/callback?{urlsplit(address).query}", headers=headers)
        assert returned.headers["location"] == "../"
        assert "Secure" in returned.headers["set-cookie"]


def test_a_sign_in_ends_after_ten_minutes() -> None:
    now = 1_800_000_000.0
    transactions = SignInTransactions(SECRET.encode(), secure=False, clock=lambda: now)
    begun = transactions.begin("#/agents")
    assert transactions.read({transactions.cookie: begun.token}) == begun
    now += LIFETIME_SECONDS
    assert transactions.read({transactions.cookie: begun.token}) is None
    assert transactions.read({transactions.cookie: "x"}) is None


def test_supervisors_that_share_their_work_need_a_secret(tmp_path: Path) -> None:
    alone = {"A2A_OAUTH_ISSUER": "https://issuer.example", "OIDC_CLIENT_ID": PAGE, "DATA_DIR": str(tmp_path)}
    shared = alone | {"EVENT_LOG": "postgres", "EVENT_LOG_POSTGRES_DSN": "postgresql://db.example/x"}
    with pytest.raises(SettingsError, match="needs SESSION_SECRET"):
        session_secret(load_settings(shared, None))
    assert not [*tmp_path.iterdir()]
    assert SECRET in session_secret(load_settings(shared | {"SESSION_SECRET": SECRET}, None))
    own = session_secret(load_settings(alone, None))
    assert own == session_secret(load_settings(alone, None))
    assert (tmp_path / "session.key").stat().st_mode & 0o077 == 0
