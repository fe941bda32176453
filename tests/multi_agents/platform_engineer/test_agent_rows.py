"""`GET /agents` of a supervisor: what is known of every agent, in-process, remote or off."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from ai_platform_engineering.manifest import builtin_directory, load_manifests
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.multi_agents import loopback
from tests.servers import serving


async def agents(environ: dict[str, str]) -> dict[str, dict[str, Any]]:
    async with serving(create_app, environ) as url, httpx.AsyncClient(base_url=url, timeout=30) as http:
        response = await http.get("/agents")
        assert response.status_code == 200, response.text
        listed = {(row["agent"], row["name"]) for row in (await http.get("/tools")).json()["tools"]}
        rows = {row["name"]: row for row in response.json()["agents"]}
        shown = {(name, tool["name"]) for name, row in rows.items() for tool in row["tools"]}
        assert shown == {row for row in listed if row[0] in rows}
        return rows


async def test_agents_of_the_sandbox_and_agents_without_settings(tmp_path: Path) -> None:
    rows = await agents({"DATA_DIR": str(tmp_path), "JIRA_URL": "https://user:hunter2@jira.example", "SANDBOX": "true"})
    assert [*rows] == sorted(load_manifests([builtin_directory()]))
    argocd = rows["argocd"]
    tools = {tool["name"]: tool for tool in argocd.pop("tools")}
    assert argocd == {
        "name": "argocd",
        "title": "Argo CD",
        "description": argocd["description"],
        "enabled": True,
        "placement": "in-process",
        "why": "sandbox",
        "sandbox": True,
        "reachable": True,
        "problem": None,
        "missing": [
            {
                "setting": "ARGOCD_API_URL",
                "description": "Address of the Argo CD server, for example https://argocd.example.com",
            },
            {
                "setting": "ARGOCD_API_TOKEN",
                "description": "API token of an Argo CD account, from `argocd account generate-token`",
            },
        ],
        "examples": argocd["examples"],
    }
    assert "show argocd version" in argocd["examples"]
    assert {(tool["read_only"], tool["destructive"]) for tool in tools.values()} >= {(True, False), (False, False)}
    assert tools["version_service__version"]["description"]
    splunk = rows["splunk"]
    assert (splunk["enabled"], splunk["placement"], splunk["reachable"], splunk["tools"]) == (False, None, None, [])
    assert splunk["why"] == "SPLUNK_HOST and SPLUNK_TOKEN are not set"
    assert [row["setting"] for row in rows["jira"]["missing"]] == ["JIRA_API_TOKEN"]
    assert "JIRA_API_TOKEN is not set" in rows["jira"]["problem"]
    assert rows["netutils"]["missing"] == []
    assert all(setting["description"] for row in rows.values() for setting in row["missing"])
    assert "hunter2" not in str(rows)


async def test_remote_agents_are_asked_for_their_tools(tmp_path: Path, unused_port: int) -> None:
    async def foreign(request: loopback.Request) -> bytes:
        if request[0] == "/tools":
            rows = [{"name": "rain", "description": 7, "read_only": "yes", "extra": 1}, {"name": ""}, "x"]
            return loopback.response(200, {"tools": rows})
        return loopback.response(200, loopback.card())

    agent_environ = {"DATA_DIR": str(tmp_path / "agent"), "SANDBOX": "true"}
    async with (
        serving(lambda settings: create_agent_app(settings, "argocd"), agent_environ) as argocd,
        loopback.serving(foreign) as weather,
    ):
        rows = await agents(
            {
                "DATA_DIR": str(tmp_path),
                "SANDBOX": "true",
                "DISTRIBUTED_AGENTS": "argocd,jira",
                "ARGOCD_AGENT_URL": argocd,
                "JIRA_AGENT_URL": f"http://bob:hunter2@127.0.0.1:{unused_port}",
                "WEATHER_AGENT_URL": weather.address,
            }
        )
    remote = rows["argocd"]
    assert (remote["placement"], remote["why"], remote["sandbox"]) == ("remote", "named in DISTRIBUTED_AGENTS", False)
    assert (remote["reachable"], remote["problem"], remote["missing"]) == (True, None, [])
    assert "version_service__version" in {tool["name"] for tool in remote["tools"]}
    assert (rows["jira"]["reachable"], rows["jira"]["tools"]) == (False, [])
    assert rows["jira"]["problem"] == "connection refused"
    assert rows["weather"] | {"tools": []} == {
        "name": "weather",
        "title": "Weather",
        "description": "Weather for any place.",
        "enabled": True,
        "placement": "remote",
        "why": "only a URL is known",
        "sandbox": False,
        "reachable": True,
        "problem": None,
        "missing": [],
        "examples": [],
        "tools": [],
    }
    assert rows["weather"]["tools"] == [{"name": "rain", "description": "", "read_only": False, "destructive": False}]
    assert "hunter2" not in str(rows)


async def test_an_agent_without_tools_says_why(tmp_path: Path) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (folder / "stars.yaml").write_text(
        "name: stars\ndescription: Stars.\nprompt: You look at stars.\n"
        "servers: [{name: stars, transport: stdio, command: no-such-command-here}]\n"
    )
    rows = await agents({"DATA_DIR": str(tmp_path), "SANDBOX": "true", "AGENTS_DIR": str(folder)})
    assert (rows["stars"]["reachable"], rows["stars"]["tools"]) == (False, [])
    assert "no-such-command-here" in rows["stars"]["problem"]
