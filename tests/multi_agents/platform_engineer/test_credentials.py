"""Credentials of the supervisor go to the addresses that its operator configured, and to no other."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.utils.a2a_common.protocol import RESUME_EXTENSION
from tests.servers import serving

OWN = "key-of-the-supervisor"
AGENTS = "key-of-all-the-agents"
ARGOCD = "key-of-the-argocd-agent"
KEYS = {"A2A_AUTH_SHARED_KEY": OWN, "A2A_AGENTS_AUTH_KEY": AGENTS}
SHARED = {"A2A_AUTH_SHARED_KEY": OWN, "A2A_AGENTS_SHARE_KEY": "true"}
ANSWER = (
    'data: {"jsonrpc": "2.0", "id": "1", "result": {"task": {"id": "t", "contextId": "c", '
    '"status": {"state": "TASK_STATE_COMPLETED"}, '
    '"artifacts": [{"artifactId": "a", "name": "final_result", "parts": [{"text": "weather is fine"}]}]}}}\n\n'
)


class Elsewhere:
    """A server that remembers what it was sent, answers every question, and has a card of any content."""

    def __init__(self, card: Mapping[str, Any] | None = None, redirect: str = "") -> None:
        self.card = card
        self.redirect = redirect
        self.authorizations: list[str | None] = []
        self.paths: list[str] = []

    def __call__(self, _settings: object) -> Starlette:
        async def card(request: Request) -> Response:
            self._note(request)
            return JSONResponse(self.card)

        async def rpc(request: Request) -> Response:
            self._note(request)
            if self.redirect:
                return RedirectResponse(self.redirect, 307)
            return StreamingResponse(iter([ANSWER]), media_type="text/event-stream")

        return Starlette(routes=[Route("/.well-known/agent-card.json", card), Route("/", rpc, methods=["POST"])])

    def _note(self, request: Request) -> None:
        self.paths.append(request.url.path)
        self.authorizations.append(request.headers.get("authorization"))


def card_for(url: str, *, ours: bool) -> dict[str, Any]:
    interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    extensions = [{"uri": RESUME_EXTENSION}] if ours else []
    return {
        "name": "weather",
        "description": "Tells the weather.",
        "version": "1",
        "supportedInterfaces": [interface],
        "capabilities": {"streaming": True, "extensions": extensions},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    }


def environ_of(folder: Path, **more: str) -> dict[str, str]:
    off = {f"ENABLE_{name}": "false" for name in ("ARGOCD", "JIRA", "GITHUB", "PAGERDUTY", "NETUTILS")}
    return {"DATA_DIR": str(folder), "ENABLE_RAG": "false", "OFFLINE_MODEL_DELAY": "0", "SANDBOX": "true", **off} | more


async def ask(url: str, question: str) -> str:
    """All that happened in the task, as text."""
    message = {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": question}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": message}}
    async with httpx.AsyncClient(timeout=30) as http:
        return (await http.post(url, json=call, headers={"Authorization": f"Bearer {OWN}"})).text


@asynccontextmanager
async def two_servers(ours: bool, redirect: bool) -> AsyncIterator[tuple[str, Elsewhere, Elsewhere]]:
    """The configured server, and another one that its card, or its redirect, names."""
    stranger = Elsewhere()
    # A card's 127.0.0.1 is the agent's own machine. This is another host.
    async with serving(stranger, {}, host="127.0.0.2") as other:
        configured = Elsewhere(redirect=other if redirect else "")
        async with serving(configured, {}) as url:
            configured.card = card_for(url if redirect else other, ours=ours)
            yield url, configured, stranger


@pytest.mark.parametrize("ours", [True, False])
@pytest.mark.parametrize("redirect", [True, False])
async def test_a_card_or_a_redirect_does_not_lead_a_key_elsewhere(tmp_path: Path, ours: bool, redirect: bool) -> None:
    async with two_servers(ours, redirect) as (url, configured, stranger):
        environ = environ_of(tmp_path, WEATHER_AGENT_URL=url, **KEYS)
        async with serving(create_app, environ) as supervisor:
            said = await ask(supervisor, "ask the weather agent for the weather")
    assert stranger.paths == []
    assert set(configured.authorizations) == {f"Bearer {AGENTS}"}
    if redirect:
        assert "weather is fine" not in said
    else:
        assert "which is not the configured address" in said


async def test_a_card_that_names_another_host_is_used_only_where_that_is_allowed(tmp_path: Path) -> None:
    async with two_servers(ours=False, redirect=False) as (url, configured, stranger):
        environ = environ_of(tmp_path, WEATHER_AGENT_URL=url, A2A_AUTH_SHARED_KEY=OWN)
        async with serving(create_app, environ) as supervisor:
            refused = await ask(supervisor, "ask the weather agent for the weather")
        assert "which is not the configured address" in refused
        assert stranger.paths == []
        allowed = {"AGENT_ALLOWED_ORIGINS": (configured.card or {})["supportedInterfaces"][0]["url"]}
        async with serving(create_app, environ | allowed) as supervisor:
            said = await ask(supervisor, "ask the weather agent for the weather")
    assert "weather is fine" in said


@pytest.mark.parametrize(
    ("supervisor_keys", "agent_keys", "works"),
    [
        (KEYS, KEYS, True),
        (SHARED, SHARED, True),
        ({"A2A_AUTH_SHARED_KEY": OWN}, SHARED, False),
        (KEYS, SHARED, False),
        (KEYS | {"A2A_AGENT_KEYS": f"argocd:{ARGOCD}"}, {"A2A_AGENTS_AUTH_KEY": ARGOCD}, True),
        (KEYS, {"A2A_AGENT_KEYS": f"argocd:{ARGOCD}"}, False),
    ],
)
async def test_the_key_that_opens_the_supervisor_opens_agents_only_where_that_is_set(
    tmp_path: Path, supervisor_keys: dict[str, str], agent_keys: dict[str, str], works: bool
) -> None:
    environ = environ_of(tmp_path) | {"ENABLE_ARGOCD": "true"}
    async with serving(partial(create_agent_app, name="argocd"), environ | agent_keys) as agent:
        remote = {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": agent}
        async with serving(create_app, environ | remote | supervisor_keys) as url:
            said = await ask(url, "show argocd version")
    assert ("v3.1.8" in said) == works
    assert ("set A2A_AGENTS_AUTH_KEY to its key" in said) != works


async def test_the_key_of_the_supervisor_alone_does_not_open_an_agent(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Set A2A_AGENTS_AUTH_KEY to a key of their own"):
        async with serving(partial(create_agent_app, name="argocd"), environ_of(tmp_path, A2A_AUTH_SHARED_KEY=OWN)):
            pass


async def test_an_agent_with_a_key_of_its_own_does_not_take_the_supervisors(tmp_path: Path) -> None:
    app = partial(create_agent_app, name="argocd")
    async with serving(app, environ_of(tmp_path) | KEYS) as agent, httpx.AsyncClient() as http:
        refused = await http.get(f"{agent}/tools", headers={"Authorization": f"Bearer {OWN}"})
        taken = await http.get(f"{agent}/tools", headers={"Authorization": f"Bearer {AGENTS}"})
    assert (refused.status_code, taken.status_code) == (401, 200)
    assert "<A2A_AGENTS_AUTH_KEY>" in refused.json()["message"]
