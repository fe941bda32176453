"""Access tokens from end to end: a client, a supervisor and an agent on a server of its own, and one issuer."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import anyio
import httpx
import pytest

from ai_platform_engineering.events import AgentFinished, FinalResult
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.a2a_common.client.supervisor_client import connected
from ai_platform_engineering.utils.a2a_common.client.supervisor_run import SupervisorError
from ai_platform_engineering.utils.supervisor_auth import SupervisorAuth
from tests.invariants import check
from tests.oauth_issuer import TestIssuer, issuing
from tests.servers import ROOT, calling, serving

QUESTION = "show argocd version"
SECRET = "client-secret"


def environ_of(folder: Path) -> dict[str, str]:
    return {"DATA_DIR": str(folder), "SANDBOX": "true", "ENABLE_RAG": "false", "OFFLINE_MODEL_DELAY": "0"}


def grant_of(issuer: TestIssuer) -> dict[str, str]:
    issuer.client, issuer.secret = "chat", SECRET
    return {
        "A2A_OAUTH_GRANT_URL": f"{issuer.url}/token",
        "A2A_OAUTH_CLIENT_ID": "chat",
        "A2A_OAUTH_CLIENT_SECRET": SECRET,
        "A2A_OAUTH_AUDIENCE": "platform",
    }


async def test_the_token_of_a_client_goes_on_to_the_agents(tmp_path: Path) -> None:
    async with issuing() as issuer:
        guarded = {"A2A_OAUTH_ISSUER": issuer.url, "A2A_OAUTH_AUDIENCE": "platform"}
        environ = environ_of(tmp_path) | guarded
        async with serving(partial(create_agent_app, name="argocd"), environ) as agent:
            remote = {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": agent}
            async with serving(create_app, environ | remote) as url:
                settings = load_settings(grant_of(issuer), None)
                async with connected(url, SupervisorAuth(settings)) as supervisor:
                    events = [event async for event in supervisor.ask(QUESTION, "c").items()]
                ending = check(events)
                assert isinstance(ending, FinalResult)
                assert "v3.1.8" in ending.text
                assert issuer.calls["token"] == 1, "the supervisor needs none of its own"
                async with calling(url) as stranger:
                    with pytest.raises(Exception, match="401"):
                        await stranger.ask(QUESTION)


async def test_a_supervisor_without_authentication_has_a_token_for_its_agents(tmp_path: Path) -> None:
    async with issuing() as issuer:
        guarded = {"A2A_OAUTH_ISSUER": issuer.url, "A2A_OAUTH_AUDIENCE": "platform"}
        async with serving(partial(create_agent_app, name="argocd"), environ_of(tmp_path) | guarded) as agent:
            remote = {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": agent}
            async with (
                serving(create_app, environ_of(tmp_path) | remote | grant_of(issuer)) as url,
                calling(url) as caller,
            ):
                ending = check(await caller.ask(QUESTION))
                assert isinstance(ending, FinalResult)
                assert "v3.1.8" in ending.text
                async with httpx.AsyncClient() as http:
                    tools = (await http.get(f"{url}/tools")).json()["tools"]
                assert "argocd" in {tool["agent"] for tool in tools}
                assert issuer.calls["token"] == 1


async def test_an_agent_is_not_asked_without_a_token(tmp_path: Path) -> None:
    async with issuing(TestIssuer()) as issuer:
        remote = {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": "http://127.0.0.1:9"}
        grant = grant_of(issuer) | {"A2A_OAUTH_CLIENT_SECRET": "guessed"}
        async with serving(create_app, environ_of(tmp_path) | remote | grant) as url, calling(url) as caller:
            events = await caller.ask(QUESTION)
    check(events)
    [ended] = [event for event in events if isinstance(event, AgentFinished)]
    assert "check A2A_OAUTH_CLIENT_ID and A2A_OAUTH_CLIENT_SECRET" in (ended.reason or "")


async def chat(folder: Path, url: str | None, environ: Mapping[str, str]) -> tuple[int, str, str]:
    known = {"PATH": os.environ["PATH"], "HOME": str(folder), "DATA_DIR": str(folder / "data"), "PYTHONPATH": str(ROOT)}
    where = ["--url", url] if url else []
    command = [sys.executable, "-m", "ai_platform_engineering.cli", "chat", *where, QUESTION]
    ended = await anyio.run_process(command, env={**known, **environ}, cwd=folder, check=False)
    return ended.returncode, ended.stdout.decode(), ended.stderr.decode()


async def test_chat_gets_itself_a_token(tmp_path: Path) -> None:
    async with issuing() as issuer:
        grant = grant_of(issuer)
        guarded = {"A2A_OAUTH_ISSUER": issuer.url, "A2A_OAUTH_AUDIENCE": "platform"}
        async with serving(create_app, environ_of(tmp_path) | guarded) as url:
            code, answer, _ = await chat(tmp_path, url, grant)
            assert (code, "v3.1.8" in answer) == (0, True)

            code, answer, error = await chat(tmp_path, url, grant | {"A2A_OAUTH_CLIENT_SECRET": "guessed"})
            assert (code, answer) == (2, "")
            assert "check A2A_OAUTH_CLIENT_ID and A2A_OAUTH_CLIENT_SECRET" in error
            assert "guessed" not in error

            code, answer, error = await chat(tmp_path, url, {})
            assert (code, answer) == (2, "")
            assert "A2A_OAUTH_GRANT_URL" in error
            assert len(error.splitlines()) == 1
        # One that runs in the same process needs nothing, though its settings name an issuer.
        code, answer, _ = await chat(tmp_path, None, guarded | {"ENABLE_RAG": "false"})
        assert (code, "v3.1.8" in answer) == (0, True)


async def test_a_client_says_why_it_has_no_token(tmp_path: Path) -> None:
    async with issuing(TestIssuer(down=True)) as issuer:
        settings = load_settings(grant_of(issuer), None)
        with pytest.raises(SupervisorError, match="no access token at the moment") as error:
            async with connected("http://127.0.0.1:9", SupervisorAuth(settings)):
                pass
        assert not error.value.misconfigured
