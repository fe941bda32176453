"""The user of a request, from the client over the supervisor to the MCP server of an agent, wherever the agent runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from joserfc import jwt
from joserfc.jwk import OctKey

from ai_platform_engineering.events import FinalResult, InputRequired, ToolFinished
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.invariants import check
from tests.mcp.scripted_http import ScriptedHttp
from tests.oauth_issuer import TestIssuer
from tests.servers import Caller, calling, serving

pytest_plugins = ("tests.mcp.user_fixtures",)

KEY = "a key of thirty-two characters ..."
SHARED_KEY = "the-key-of-the-supervisor"
QUESTION = "use the parrot: echo"
EXCHANGED = {"token_exchange": {"audience": "billing"}}
SIGNED = {"signed_header": {"key": "${BILLING_KEY}"}}


@asynccontextmanager
async def supervisor(
    folder: Path,
    issuer: TestIssuer,
    remote: ScriptedHttp,
    on_behalf_of: dict[str, Any],
    *,
    distributed: bool,
    approvals: str = "never",
) -> AsyncIterator[str]:
    agents = folder / "agents"
    agents.mkdir()
    server = {"name": "billing", "transport": "http", "url": remote.url, "reads": ["echo"], "tools": ["echo"]}
    manifest = {
        "name": "parrot",
        "prompt": "You are a parrot.",
        "description": "Echoes messages back.",
        "keywords": ["parrot", "echo"],
        "servers": [server | {"on_behalf_of": on_behalf_of, "approvals": {"echo": approvals}}],
    }
    (agents / "parrot.yaml").write_text(yaml.safe_dump(manifest), encoding="utf-8")
    behind = {
        "AGENTS_DIR": str(agents),
        "DATA_DIR": str(folder),
        "ENABLE_RAG": "false",
        "OFFLINE_MODEL_DELAY": "0",
        "BILLING_KEY": KEY,
        "A2A_AGENTS_AUTH_KEY": "the-key-of-the-agents",
        "A2A_OAUTH_GRANT_URL": f"{issuer.url}/token",
        "A2A_OAUTH_CLIENT_ID": issuer.client,
        "A2A_OAUTH_CLIENT_SECRET": issuer.secret,
    }
    front = {"A2A_AUTH_SHARED_KEY": SHARED_KEY, "A2A_OAUTH_ISSUER": issuer.url, "A2A_OAUTH_AUDIENCE": "platform"}
    if not distributed:
        async with serving(create_app, behind | front) as url:
            yield url
        return
    async with serving(partial(create_agent_app, name="parrot"), behind) as agent:
        placed = {"DISTRIBUTED_AGENTS": "parrot", "PARROT_AGENT_URL": agent}
        async with serving(create_app, behind | front | placed) as url:
            yield url


@asynccontextmanager
async def caller_with(url: str, bearer: str) -> AsyncIterator[Caller]:
    async with calling(url) as caller:
        caller.http.headers["Authorization"] = f"Bearer {bearer}"
        yield caller


def stored_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize("distributed", [False, True], ids=["in process", "remote"])
async def test_a_server_gets_the_users_own_token(
    tmp_path: Path, issuer: TestIssuer, remote: ScriptedHttp, distributed: bool
) -> None:
    async with supervisor(tmp_path, issuer, remote, EXCHANGED, distributed=distributed) as url:
        async with caller_with(url, issuer.token(sub="ada", aud="platform")) as ada:
            events = await ada.ask(QUESTION)
        ending = check(events)
        assert isinstance(ending, FinalResult)
        assert [event.ok for event in events if isinstance(event, ToolFinished)] == [True]
        bearer = remote.headers[-1]["authorization"].removeprefix("Bearer ")
        claims = jwt.decode(bearer, issuer.keys[-1]).claims
        assert (claims["sub"], claims["aud"], claims["act"]) == ("ada", "billing", {"sub": issuer.client})
        before = len(remote.headers)
        async with caller_with(url, SHARED_KEY) as operator:
            events = await operator.ask(QUESTION)
        check(events)
        [refused] = [event for event in events if isinstance(event, ToolFinished)]
        assert not refused.ok
        assert "echo was not run: the server takes an access token of the user" in (refused.reason or "")
        assert len(remote.headers) == before, "nothing is sent with the credential of another"
        assert bearer.encode() not in stored_bytes(tmp_path)


@pytest.mark.parametrize("distributed", [False, True], ids=["in process", "remote"])
async def test_a_server_gets_a_signed_header(
    tmp_path: Path, issuer: TestIssuer, remote: ScriptedHttp, distributed: bool
) -> None:
    async with supervisor(tmp_path, issuer, remote, SIGNED, distributed=distributed) as url:
        async with caller_with(url, issuer.token(sub="ada", aud="platform", groups=["sre"])) as ada:
            check(await ada.ask(QUESTION))
        claims = jwt.decode(remote.headers[-1]["x-platform-engineer-principal"], OctKey.import_key(KEY)).claims
        assert (claims["sub"], claims["groups"], claims["aud"]) == ("ada", ["sre"], "billing")
        assert "authorization" not in remote.headers[-1]


@pytest.mark.parametrize("distributed", [False, True], ids=["in process", "remote"])
async def test_the_token_of_a_person_who_approves_is_not_used(
    tmp_path: Path, issuer: TestIssuer, remote: ScriptedHttp, distributed: bool
) -> None:
    """The run is Ada's. Bob answers her form, and nothing is done in his name, nor in that of the client."""
    async with supervisor(tmp_path, issuer, remote, EXCHANGED, distributed=distributed, approvals="always") as url:
        async with caller_with(url, issuer.token(sub="ada", aud="platform")) as ada:
            asked = await ada.ask(QUESTION, context_id="talk")
            assert isinstance(asked[-1], InputRequired)
            shared = await ada.http.patch(f"{url}/conversations/talk", json={"groups": ["sre"]})
            assert shared.status_code == 200
        before = len(remote.headers)
        async with caller_with(url, issuer.token(sub="bob", aud="platform", groups=["sre"])) as bob:
            events = await bob.ask("approve", task_id=ada.task_id, context_id="talk")
        [refused] = [event for event in events if isinstance(event, ToolFinished)]
        assert "echo was not run: the server takes an access token of the user" in (refused.reason or "")
        assert len(remote.headers) == before


async def test_a_token_beside_a_message_that_is_no_delegation_is_ignored(
    tmp_path: Path, issuer: TestIssuer, remote: ScriptedHttp
) -> None:
    """A caller of the supervisor cannot slip in the token of another user."""
    async with supervisor(tmp_path, issuer, remote, EXCHANGED, distributed=False) as url:
        async with caller_with(url, issuer.token(sub="mallory", aud="platform")) as mallory:
            mallory.http.headers["X-Platform-Engineer-User-Token"] = issuer.token(sub="ada", aud="platform")
            check(await mallory.ask(QUESTION))
        bearer = remote.headers[-1]["authorization"].removeprefix("Bearer ")
        assert jwt.decode(bearer, issuer.keys[-1]).claims["sub"] == "mallory"
