"""Access tokens at the door of a server, with a real issuer that hands out its keys over HTTP."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
import pytest
from joserfc.jwk import OctKey, RSAKey
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from ai_platform_engineering.identity.principal import Principal, caller_in
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.a2a_common.server.auth import BearerAuth, auth_middleware
from ai_platform_engineering.utils.a2a_common.server.issuer import Issuer
from ai_platform_engineering.utils.oidc.provider import metadata_addresses
from tests.oauth_issuer import OAUTH, OPENID, TestIssuer, forged, issuing, new_key
from tests.utils.a2a_common.serving import listening, message_0_3, serving, until

CALL = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message_0_3("hello")}
KEY = "correct-horse-battery"


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize("kind", ["RSA", "EC", "OKP"])
@pytest.mark.parametrize("key_id", ["k1", None])
async def test_an_access_token_of_the_issuer_opens_everything(
    kind: Literal["RSA", "EC", "OKP"], key_id: str | None
) -> None:
    made = TestIssuer(keys=[new_key("EC", "other"), new_key(kind, key_id)])
    async with issuing(made) as issuer, serving(A2A_OAUTH_ISSUER=issuer.url) as served:
        for _ in range(3):
            answer = (await served.http.post(served.url, json=CALL, headers=bearer(issuer.token()))).json()
            assert answer["result"]["status"]["state"] == "completed"
        assert issuer.calls["keys"] == 1


Made = Callable[[TestIssuer], str]


def _signed_with_the_public_key(issuer: TestIssuer) -> str:
    """What libraries fell for that let the token choose how it is checked."""
    public = issuer.keys[0].as_pem(private=False)
    return forged({"alg": "HS256", "kid": "k1"}, issuer.claims(aud="us"), public)


def _unsigned(issuer: TestIssuer) -> str:
    return forged({"alg": "none", "kid": "k1"}, issuer.claims(aud="us"))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda issuer: issuer.token(exp=int(time.time()) - 40), "has expired"),
        (lambda issuer: issuer.token(exp=None), "missing"),
        (lambda issuer: issuer.token(nbf=int(time.time()) + 60), "not valid yet"),
        (lambda issuer: issuer.token(iss="https://elsewhere.example"), "another issuer"),
        (lambda issuer: issuer.token(iss=None), "missing"),
        (lambda issuer: issuer.token(aud="another-service"), "another audience"),
        (lambda issuer: issuer.token(aud=None), "another audience"),
        (lambda issuer: issuer.token(aud="us", iat=int(time.time()) + 60), "not valid yet"),
        (lambda issuer: issuer.token(aud="us", at_hash="x"), "send the access token"),
        (lambda issuer: issuer.token(None, "at+jwt", aud="us", sub=None), "no usable subject"),
        (lambda issuer: issuer.token(None, "logout+jwt", aud="us"), "send the access token"),
        (lambda issuer: issuer.token(new_key("EC", "k1"), aud="us"), "not signed by a key"),
        (lambda issuer: issuer.token(new_key("EC", "made-up"), aud="us"), "not signed by a key"),
        (lambda issuer: issuer.token(new_key("RSA", "k1"), aud="us"), "not signed by a key"),
        (_signed_with_the_public_key, "not accepted"),
        (_unsigned, "not accepted"),
        (lambda issuer: f"{issuer.token(aud='us')[:-8]}AAAAAAAA", "not signed by a key"),
        (lambda issuer: "x", "not an access token"),
        (lambda issuer: "a.b.c", "not an access token"),
        (lambda issuer: "ey." * 9000, "not an access token"),
    ],
)
async def test_no_other_token_does(made: Made, why: str) -> None:
    environ = {"A2A_OAUTH_AUDIENCE": "us"}
    async with issuing() as issuer, serving(A2A_OAUTH_ISSUER=issuer.url, **environ) as served:
        token = made(issuer)
        refused = await served.http.post(served.url, json=CALL, headers=bearer(token))
        assert refused.status_code == 401
        assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        assert why in refused.json()["message"]
        assert f"Bearer <access token of {issuer.url}>" in refused.json()["message"]
        assert token not in refused.text
        good = issuer.token(aud=["others", "us"], nbf=int(time.time()) + 10)
        assert (await served.http.post(served.url, json=CALL, headers=bearer(good))).status_code == 200


async def test_without_a_token_nothing_is_served_but_health_and_card() -> None:
    async with issuing() as issuer, serving(A2A_OAUTH_ISSUER=issuer.url) as served:
        for headers in ({}, {"Authorization": "Bearer"}, {"Authorization": f"Basic {issuer.token()}"}):
            refused = await served.http.get(f"{served.url}/tasks", headers=headers)
            assert refused.status_code == 401
            assert refused.headers["www-authenticate"] == "Bearer"
        for path in ("/healthz", "/readyz", "/.well-known/agent-card.json"):
            assert (await served.http.get(served.url + path)).status_code == 200
        assert not issuer.calls


async def test_the_key_and_a_token_will_both_do_where_both_are_set() -> None:
    async with issuing() as issuer, serving(A2A_OAUTH_ISSUER=issuer.url, A2A_AUTH_SHARED_KEY=KEY) as served:
        for token, code in ((KEY, 200), (issuer.token(), 200), (f"{KEY}x", 401), (issuer.token(exp=1), 401)):
            answer = await served.http.get(f"{served.url}/tasks", headers=bearer(token))
            assert answer.status_code == code
        wanted = (await served.http.get(f"{served.url}/tasks")).json()["message"]
        assert wanted.endswith(f"Bearer <A2A_AUTH_SHARED_KEY> or <access token of {issuer.url}>.")
        issuer.down = True
        assert (await served.http.get(f"{served.url}/tasks", headers=bearer(KEY))).status_code == 200


async def test_the_card_lists_what_will_do() -> None:
    environ = {"A2A_OAUTH_ISSUER": "https://issuer.example", "A2A_OAUTH_AUDIENCE": "us", "A2A_AUTH_SHARED_KEY": KEY}
    async with serving(**environ) as served:
        card = (await served.http.get(f"{served.url}/.well-known/agent-card.json")).json()
    scheme = card["securitySchemes"]["access_token"]["httpAuthSecurityScheme"]
    assert (scheme["scheme"], scheme["bearerFormat"]) == ("bearer", "JWT")
    assert "https://issuer.example, made for us" in scheme["description"]
    openid = card["securitySchemes"]["openid"]
    discovery = f"https://issuer.example{OPENID}"
    assert openid["openIdConnectSecurityScheme"]["openIdConnectUrl"] == discovery
    assert (openid["type"], openid["openIdConnectUrl"]) == ("openIdConnect", discovery), "the form of 0.3"
    assert [sorted(each["schemes"]) for each in card["securityRequirements"]] == [["key"], ["access_token"], ["openid"]]


@pytest.mark.parametrize(
    ("issuer_path", "metadata_at"),
    [("", OPENID), ("", OAUTH), ("/realms/acme", f"/realms/acme{OPENID}"), ("/realms/acme/", f"{OAUTH}/realms/acme")],
)
async def test_the_issuer_says_where_its_keys_are(issuer_path: str, metadata_at: str) -> None:
    async with issuing(TestIssuer(metadata_at=metadata_at, path=issuer_path)) as issuer:
        for name in (issuer.name.rstrip("/"), f"{issuer.name.rstrip('/')}/"):
            async with serving(A2A_OAUTH_ISSUER=name) as served:
                for iss, code in ((issuer.name, 200), (f"{issuer.name}/", 401)):
                    answer = await served.http.get(f"{served.url}/tasks", headers=bearer(issuer.token(iss=iss)))
                    assert answer.status_code == code


async def test_metadata_of_another_issuer_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    async with issuing(TestIssuer(path="/realms/other")) as issuer, serving(A2A_OAUTH_ISSUER=issuer.url) as served:
        answer = await served.http.get(f"{served.url}/tasks", headers=bearer(issuer.token()))
    assert answer.status_code == 503
    assert f"those of another issuer, '{issuer.name}'" in caplog.text


async def test_groups_come_from_the_configured_claim() -> None:
    environ = {"A2A_OAUTH_GROUPS_CLAIM": "realm_access.roles", "A2A_OAUTH_ADMIN_GROUPS": "ops, root"}
    seen: list[Principal] = []

    async def page(request: Request) -> Response:
        seen.append(caller_in(request.scope["state"]))
        return PlainTextResponse("hello")

    async with issuing() as issuer:
        settings = load_settings(environ | {"A2A_OAUTH_ISSUER": issuer.url}, None)
        app = Starlette(routes=[Route("/", page)], middleware=auth_middleware(settings))
        async with listening(app) as url, httpx.AsyncClient() as http:
            for roles in (["sre", "root"], "sre dev", None):
                token = issuer.token(sub="ada", groups=["ops"], realm_access={"roles": roles})
                assert (await http.get(url, headers=bearer(token))).status_code == 200
    assert seen == [
        Principal("token", "ada", frozenset({"sre", "root"}), frozenset({"user", "admin"})),
        Principal("token", "ada", frozenset({"sre", "dev"})),
        Principal("token", "ada"),
    ]


def test_metadata_are_looked_for_in_all_the_usual_places() -> None:
    assert metadata_addresses("https://i.example/") == [f"https://i.example{OPENID}", f"https://i.example{OAUTH}"]


async def test_the_address_of_the_keys_may_be_set_instead() -> None:
    async with issuing(TestIssuer(metadata_at="/nowhere")) as issuer:
        keys = {"A2A_OAUTH_JWKS_URL": f"{issuer.url}/keys"}
        async with serving(A2A_OAUTH_ISSUER="https://issuer.example", **keys) as served:
            token = issuer.token(iss="https://issuer.example")
            assert (await served.http.get(f"{served.url}/tasks", headers=bearer(token))).status_code == 200
        assert not issuer.calls["metadata"]


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def guarded(issuer: TestIssuer, clock: Clock) -> AsyncIterator[Callable[[str], Any]]:
    """A page behind the door, with a clock that can be turned on."""

    async def page(_request: Request) -> Response:
        return PlainTextResponse("hello")

    door = Middleware(BearerAuth, issuer=Issuer(issuer.url, clock=clock))
    async with (
        listening(Starlette(routes=[Route("/", page)], middleware=[door])) as url,
        httpx.AsyncClient() as http,
    ):

        async def status(token: str) -> int:
            return (await http.get(url, headers=bearer(token))).status_code

        yield status


async def test_a_new_key_is_taken_up_and_a_withdrawn_one_is_not_good_for_ever() -> None:
    clock = Clock()
    async with issuing() as issuer, guarded(issuer, clock) as status:
        old = issuer.token()
        assert await status(old) == 200
        issuer.keys.append(new_key("RSA", "k2"))
        clock.now += 10
        assert await status(issuer.token()) == 200
        assert await status(old) == 200
        assert issuer.calls["keys"] == 2

        del issuer.keys[0]
        assert await status(old) == 200
        clock.now += 3601
        assert await status(old) == 200, "the keys are fetched beside the request, not before it"
        await until(lambda: issuer.calls["keys"] == 3)
        answers = [await status(old) for _ in range(50)]
        assert answers[-1] == 401
        assert await status(issuer.token()) == 200


async def test_tokens_with_made_up_keys_do_not_become_requests_to_the_issuer() -> None:
    clock = Clock()
    async with issuing() as issuer, guarded(issuer, clock) as status:
        made_up = [issuer.token(new_key("EC", f"x{number}")) for number in range(20)]
        assert set(await asyncio.gather(*map(status, made_up))) == {401}
        assert issuer.calls["keys"] == 1
        clock.now += 9
        assert await status(made_up[0]) == 401
        assert issuer.calls["keys"] == 1
        assert await status(issuer.token()) == 200


async def test_many_at_once_wait_for_one_fetch() -> None:
    async with issuing() as issuer, guarded(issuer, Clock()) as status:
        assert set(await asyncio.gather(*(status(issuer.token()) for _ in range(20)))) == {200}
        assert issuer.calls["keys"] == 1


async def test_an_issuer_that_is_down_leaves_its_keys_in_use(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    async with issuing() as issuer, guarded(issuer, clock) as status:
        issuer.down = True
        assert await status(issuer.token()) == 503
        assert await status(issuer.token()) == 503
        assert issuer.calls["metadata"] == 1, "not asked again at every request"
        clock.now += 1
        issuer.down = False
        assert await status(issuer.token()) == 200
        issuer.down = True
        clock.now += 7200
        assert await status(issuer.token()) == 200
        assert await status(issuer.token(new_key("EC", "k2"))) == 401
    warned = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [issuer.url in record.getMessage() for record in warned] == [True, True]
    assert "HTTP 503" in warned[0].getMessage()


async def test_an_issuer_that_was_never_there_is_said_in_a_sentence() -> None:
    async with serving(A2A_OAUTH_ISSUER="http://127.0.0.1:9") as served:
        token = TestIssuer(url="http://127.0.0.1:9").token()
        answer = await served.http.get(f"{served.url}/tasks", headers=bearer(token))
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert answer.json()["message"].startswith("The keys of the OAuth2 issuer cannot be fetched at the moment.")
    assert "127.0.0.1:9" not in answer.text


@pytest.mark.filterwarnings("ignore:Key size")
async def test_keys_that_are_not_for_this_are_not_used() -> None:
    small, secret = RSAKey.generate_key(1024, {"kid": "small"}), OctKey.generate_key(256, {"kid": "secret"})
    hidden = new_key("EC", "hidden")
    unfit = [small.as_dict(private=False), secret.as_dict(), {**hidden.as_dict(private=False), "use": "enc"}]
    nonsense: list[Any] = [{}, {"kty": "RSA", "n": 7}, {"kty": "EC", "crv": "P-256", "x": "", "y": ""}, {"kty": "PQC"}]
    async with issuing(TestIssuer(unfit=[*unfit, *nonsense])) as issuer:
        tokens = [
            issuer.token(small),
            issuer.token(hidden),
            forged({"alg": "HS256", "kid": "secret"}, issuer.claims(), secret.raw_value),
        ]
        async with serving(A2A_OAUTH_ISSUER=issuer.url) as served:
            for token in tokens:
                refused = await served.http.get(f"{served.url}/tasks", headers=bearer(token))
                assert refused.status_code == 401
            assert (await served.http.get(f"{served.url}/tasks", headers=bearer(issuer.token()))).status_code == 200
