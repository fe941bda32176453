"""The policy through the front door: what people see, use and approve, wherever the agent runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.servers import serving

KEYS = {name: f"{name}-0123456789abcdef" for name in ("dev", "sre", "guest")}
POLICY = """
version: 1
groups: {developers: ["key:dev"], oncall: ["key:sre"]}
rules:
  - name: syncs are approved by the people on call
    who: [group:developers]
    tools: [argocd.sync_application]
    action: approve
    approvers: [group:oncall]
  - {name: nobody deletes, who: ["*"], tools: ["*.delete_*"], action: deny}
  - name: guests see little
    who: ["key:guest"]
    agents: [jira, pagerduty]
    skills: ["incident-*"]
    workflows: ["*"]
    action: deny
  - {name: guests only read, who: ["key:guest"], tools: ["*.*"], effects: [write, destructive], action: deny}
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    keys = ", ".join(f"{name}:user:{key}" for name, key in KEYS.items())
    return {
        "DATA_DIR": str(tmp_path / "data"),
        "ENABLE_RAG": "false",
        "A2A_AUTH_KEYS": keys,
        "POLICY_FILE": str(file),
        "A2A_AGENTS_AUTH_KEY": "agents-0123456789abcdef",
    }


@asynccontextmanager
async def supervisor(environ: dict[str, str], *, remote: bool = False) -> AsyncIterator[httpx.AsyncClient]:
    async with AsyncExitStack() as stack:
        if remote:
            # The agent has no policy of its own: the rules come with the delegation.
            own = {name: value for name, value in environ.items() if name != "POLICY_FILE"}
            agent = await stack.enter_async_context(serving(partial(create_agent_app, name="argocd"), own))
            environ = {**environ, "DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": agent}
        url = await stack.enter_async_context(serving(create_app, environ))
        yield await stack.enter_async_context(httpx.AsyncClient(base_url=url, timeout=60))


async def get(http: httpx.AsyncClient, path: str, who: str) -> Any:
    return (await http.get(path, headers={"Authorization": f"Bearer {KEYS[who]}"})).json()


async def ask(http: httpx.AsyncClient, who: str, text: str = "", **message: Any) -> dict[str, Any]:
    said = {"role": "user", "messageId": uuid4().hex, "parts": [{"kind": "text", "text": text}], **message}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": said}}
    response = await http.post("/", json=body, headers={"Authorization": f"Bearer {KEYS[who]}"})
    found: dict[str, Any] = response.json()
    return found


def text_of(task: dict[str, Any]) -> str:
    return " ".join(part.get("text", "") for artifact in task.get("artifacts", ()) for part in artifact["parts"])


async def test_what_a_caller_may_not_see_is_in_no_listing_and_no_prompt(environ: dict[str, str]) -> None:
    async with supervisor(environ) as http:
        agents = {who: {row["name"] for row in (await get(http, "/agents", who))["agents"]} for who in ("dev", "guest")}
        assert agents["dev"] - agents["guest"] == {"jira", "pagerduty"}
        tools = {who: (await get(http, "/tools", who))["tools"] for who in ("dev", "guest")}
        assert {row["agent"] for row in tools["guest"]}.isdisjoint({"jira", "pagerduty"})
        assert all(row["read_only"] for row in tools["guest"])
        assert not any(row["name"].startswith("delete") for row in tools["dev"])
        assert (await get(http, "/workflows", "guest"))["workflows"] == []
        assert "jira" not in (await get(http, "/about", "guest"))["agent_titles"]
        skills = {who: {row["name"] for row in (await get(http, "/skills", who))["skills"]} for who in ("dev", "guest")}
        hidden = skills["dev"] - skills["guest"]
        assert hidden == {name for name in skills["dev"] if name.startswith("incident-")} != set()
        answer = text_of((await ask(http, "guest", "list my jira tickets"))["result"])
        assert "Calling Agent Jira" not in answer


@pytest.mark.parametrize("remote", [False, True])
async def test_a_rule_says_who_approves_and_another_cannot(environ: dict[str, str], remote: bool) -> None:
    async with supervisor(environ, remote=remote) as http:
        task = (await ask(http, "dev", "sync the guestbook app"))["result"]
        assert task["status"]["state"] == "input-required"
        assert "Only members of oncall may approve this." in str(task)
        resume = [{"kind": "data", "data": {"resume": {"decisions": [{"type": "approve"}]}}}]
        again = (await ask(http, "dev", taskId=task["id"], parts=resume))["result"]
        assert again["status"]["state"] == "input-required"
        assert "You are key:dev." in str(again["artifacts"])
        path = f"/conversations/{task['contextId']}"
        shared = await http.patch(path, json={"groups": ["oncall"]}, headers={"Authorization": f"Bearer {KEYS['dev']}"})
        assert shared.status_code == 200
        done = (await ask(http, "sre", taskId=task["id"], parts=resume))["result"]
        assert done["status"]["state"] == "completed"
        assert "sync_application completed" in text_of(done).lower()
        read = await http.get(path, headers={"Authorization": f"Bearer {KEYS['dev']}"})
        assert [decision["by"] for decision in read.json()["tasks"][0]["decisions"]][-1:] == ["key:sre"]


async def test_a_denied_tool_is_not_called(environ: dict[str, str]) -> None:
    async with supervisor(environ) as http:
        answer = (await ask(http, "guest", "sync the guestbook app"))["result"]
        assert "sync_application completed" not in text_of(answer).lower()
