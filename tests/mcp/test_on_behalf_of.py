"""Servers that learn for which user a tool is called: by a signed header, or by a token from a token exchange."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey

from ai_platform_engineering.identity.principal import KEY_HOLDER, Principal
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpUnavailable
from ai_platform_engineering.mcp.on_behalf_of import Requester
from tests.mcp.scripted_http import ScriptedHttp
from tests.mcp.support import Start, tool
from tests.oauth_issuer import TestIssuer

pytest_plugins = ("tests.mcp.user_fixtures",)

KEY = "a key of thirty-two characters ..."
ADA = Principal("token", "ada", frozenset({"sre", "ops"}))
BOB = Principal("statement", "slack:T1/U2", frozenset({"dev"}), via="key:bot")
HEADER = "x-platform-engineer-principal"
SIGNED: dict[str, Any] = {"signed_header": {"key": "${BILLING_KEY}", "audience": "billing"}}
EXCHANGED: dict[str, Any] = {"token_exchange": {"audience": "billing", "scope": "invoices"}}

current: ContextVar[Requester] = ContextVar("current")


def entry(url: str, on_behalf_of: dict[str, Any], **more: Any) -> McpServer:
    return McpServer(name="remote", transport="http", url=url, on_behalf_of=on_behalf_of, **more)


def grant_of(issuer: TestIssuer) -> dict[str, str]:
    return {
        "A2A_OAUTH_GRANT_URL": f"{issuer.url}/token",
        "A2A_OAUTH_CLIENT_ID": issuer.client,
        "A2A_OAUTH_CLIENT_SECRET": issuer.secret,
    }


def calls(remote: ScriptedHttp) -> list[dict[str, str]]:
    """The headers of the requests that call a tool."""
    named = [method for method, _ in remote.seen if method != "DELETE"]
    return [headers for method, headers in zip(named, remote.headers, strict=True) if method == "tools/call"]


def claims_of(issuer: TestIssuer, headers: dict[str, str]) -> dict[str, Any]:
    """The claims of the bearer token in the headers of a request."""
    return jwt.decode(headers["authorization"].removeprefix("Bearer "), issuer.keys[-1]).claims


async def test_a_signed_header_names_the_user_of_each_call(mcp_servers: Start, remote: ScriptedHttp) -> None:
    servers = await mcp_servers(entry(remote.url, SIGNED), requester=current.get, BILLING_KEY=KEY)

    async def call_as(principal: Principal) -> None:
        current.set(Requester(principal))
        await tool(servers, "echo").ainvoke({"for": principal.subject})

    await asyncio.gather(call_as(ADA), call_as(BOB), call_as(Principal()))
    assert [HEADER in headers for headers in remote.headers].count(True) == 3, "not with the session's own requests"
    tokens = [jwt.decode(headers[HEADER], OctKey.import_key(KEY), ["HS256"]).claims for headers in calls(remote)]
    stated = {token.get("sub"): token for token in tokens}
    assert stated["ada"]["groups"] == ["ops", "sre"]
    assert (stated["ada"]["verified_by"], stated["ada"]["aud"]) == ("token", "billing")
    assert (stated["slack:T1/U2"]["verified_by"], stated["slack:T1/U2"]["via"]) == ("statement", "key:bot")
    assert stated[None]["verified_by"] == "anonymous"
    assert all(token["exp"] - token["iat"] == 60 for token in tokens)
    assert len({token["jti"] for token in tokens}) == 3


async def test_a_key_that_is_missing_or_short_keeps_the_server_out(mcp_servers: Start, remote: ScriptedHttp) -> None:
    missing = await mcp_servers(entry(remote.url, SIGNED))
    assert missing.problem("demo") == "The remote server was not started because BILLING_KEY is not set."
    short = await mcp_servers(entry(remote.url, SIGNED), BILLING_KEY="short")
    assert "the key of 'signed_header' has fewer than 32 characters" in (short.problem("demo") or "")
    assert remote.seen == []


async def test_the_token_of_the_user_is_exchanged_once(
    mcp_servers: Start, remote: ScriptedHttp, issuer: TestIssuer
) -> None:
    servers = await mcp_servers(entry(remote.url, EXCHANGED), requester=current.get, **grant_of(issuer))
    tokens = {subject: issuer.token(sub=subject) for subject in ("ada", "bob")}
    for subject in ("ada", "ada", "bob"):
        current.set(Requester(Principal("token", subject), tokens[subject]))
        await tool(servers, "echo").ainvoke({})
    sent = [claims_of(issuer, headers) for headers in calls(remote)]
    assert [(claims["sub"], claims["aud"]) for claims in sent] == [(name, "billing") for name in ("ada", "ada", "bob")]
    exchanges = [form for form in issuer.forms if "subject_token" in form]
    assert len(exchanges) == 2
    assert {form["scope"] for form in exchanges} == {"invoices"}
    # The session belongs to all users: its requests have a token of the client itself.
    own = claims_of(issuer, remote.headers[0])
    assert (own["sub"], own["aud"]) == ("client", "billing")


@pytest.mark.parametrize(
    ("requester", "audience", "reason"),
    [
        (Requester(KEY_HOLDER), "billing", "this request has none"),
        (Requester(ADA, "not a token"), "billing", "check 'token_exchange' in the manifest"),
        (Requester(ADA), "another", "check 'token_exchange' in the manifest"),
    ],
    ids=["a caller with a key", "a token of another issuer", "a service for which none is given"],
)
async def test_without_a_token_of_the_user_nothing_is_called(
    mcp_servers: Start, remote: ScriptedHttp, issuer: TestIssuer, requester: Requester, audience: str, reason: str
) -> None:
    if requester == Requester(ADA):
        requester = Requester(ADA, issuer.token(sub="ada"))
    asked = {"token_exchange": {"audience": audience}}
    servers = await mcp_servers(entry(remote.url, asked), requester=lambda: requester, **grant_of(issuer))
    with pytest.raises(McpUnavailable, match="echo was not run") as error:
        await tool(servers, "echo").ainvoke({})
    assert reason in str(error.value)
    assert calls(remote) == []


async def test_the_manifests_own_credential_serves_the_session(
    mcp_servers: Start, remote: ScriptedHttp, issuer: TestIssuer
) -> None:
    server = entry(remote.url, EXCHANGED, headers={"Authorization": "Bearer ${PAT}"})
    requester = Requester(ADA, issuer.token(sub="ada"))
    servers = await mcp_servers(server, requester=lambda: requester, PAT="t0ken", **grant_of(issuer))
    await tool(servers, "echo").ainvoke({})
    assert remote.headers[0]["authorization"] == "Bearer t0ken"
    [called] = calls(remote)
    assert claims_of(issuer, called)["sub"] == "ada"


async def test_a_server_that_refuses_the_user_is_reported_as_such(
    mcp_servers: Start, remote: ScriptedHttp, issuer: TestIssuer
) -> None:
    remote.required_token = "t0ken"
    server = entry(remote.url, EXCHANGED, headers={"Authorization": "Bearer t0ken"})
    requester = Requester(ADA, issuer.token(sub="ada"))
    servers = await mcp_servers(server, requester=lambda: requester, **grant_of(issuer))
    for _ in range(2):
        with pytest.raises(McpUnavailable, match=r"refused the credentials of this user \(HTTP 401 Unauthorized\)"):
            await tool(servers, "echo").ainvoke({})
    assert issuer.calls["token"] == 2, "a token that was refused is not used again"


async def test_a_client_that_gets_no_token_keeps_the_server_out(
    mcp_servers: Start, remote: ScriptedHttp, issuer: TestIssuer
) -> None:
    refused = await mcp_servers(
        entry(remote.url, EXCHANGED), **grant_of(issuer) | {"A2A_OAUTH_CLIENT_SECRET": "guessed"}
    )
    assert "check A2A_OAUTH_CLIENT_ID and A2A_OAUTH_CLIENT_SECRET" in (refused.problem("demo") or "")
    unset = await mcp_servers(entry(remote.url, EXCHANGED))
    assert "needs A2A_OAUTH_GRANT_URL" in (unset.problem("demo") or "")
    assert remote.seen == []
