"""The skills API beside A2A on one port, as processes: in both placements, and after a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from ai_platform_engineering.events import AgentFinished, FinalResult
from tests.invariants import check
from tests.servers import CommandLine, calling
from tests.skills_middleware.git_server import commit
from tests.skills_middleware.rest_servers import ANY, body, names
from tests.skills_middleware.test_sources import write


@asynccontextmanager
async def placed(folder: Path, placement: str) -> AsyncIterator[dict[str, str]]:
    """The environment of a supervisor whose agents run in its process or in processes of their own."""
    environ = {"DATA_DIR": str(folder), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", "LOG_LEVEL": "warning"}
    if placement == "in-process":
        yield environ
        return
    async with CommandLine(["agent", "argocd", "--port", "0"], environ) as agent:
        yield environ | {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": agent.url}


@pytest.mark.parametrize("placement", ["in-process", "distributed"])
async def test_skills_and_a2a_on_one_port_and_after_a_restart(tmp_path: Path, placement: str) -> None:
    async with placed(tmp_path, placement) as environ:
        async with CommandLine(["serve", "--port", "0"], environ) as process, calling(process.url) as caller:
            http = caller.http
            http.base_url = httpx.URL(process.url)
            assert "incident-triage" in await names(http, "?limit=200")
            created = await http.post("/skills", json=body(files={"notes.md": "Notes."}))
            assert created.status_code == 201, created.text
            events = await caller.ask("show argocd version")
            assert isinstance(check(events), FinalResult)
            assert [event.agent for event in events if isinstance(event, AgentFinished) and event.ok] == ["argocd"]

        async with (
            CommandLine(["serve", "--port", "0"], environ) as process,
            httpx.AsyncClient(base_url=process.url, timeout=30) as http,
        ):
            assert await names(http, "?source=api") == ["hello"]
            shown = (await http.get("/skills/hello?include_content=true")).json()
            assert shown["contents"] == {"notes.md": "Notes."}
            assert shown["etag"] == created.headers["etag"]
            assert shown["added_at"] == created.json()["added_at"]
            assert "skill-hello" in (await http.get("/.well-known/agent-card.json")).text
            assert (await http.delete("/skills/hello", headers=ANY)).status_code == 204
            assert await names(http, "?source=api") == []
            assert (await http.get("/skills/hello")).status_code == 404


async def test_a_process_sees_what_another_one_changed(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "LOG_LEVEL": "warning"}
    # Tasks and conversations have one process each; skills are shared.
    environ |= {"EVENT_LOG": "memory", "CONVERSATIONS": "memory"}
    async with (
        CommandLine(["serve", "--port", "0"], environ) as one,
        CommandLine(["serve", "--port", "0"], environ) as other,
        httpx.AsyncClient(base_url=one.url, timeout=30) as first,
        httpx.AsyncClient(base_url=other.url, timeout=30) as second,
    ):
        tag = (await first.post("/skills", json=body())).headers["etag"]
        assert await names(second, "?source=api") == ["hello"]
        changed = await second.put("/skills/hello", json=body(text="Wave."), headers={"If-Match": tag})
        assert changed.status_code == 200
        assert (await first.get("/skills/hello")).json()["instructions"] == "Wave."
        assert (await first.put("/skills/hello", json=body(), headers={"If-Match": tag})).status_code == 412


async def test_the_skills_of_a_repository_are_served_and_stay_when_it_is_gone(tmp_path: Path) -> None:
    write(tmp_path / "team" / "rollback")
    commit(tmp_path / "team")
    (tmp_path / "data").mkdir()
    environ = {"DATA_DIR": str(tmp_path / "data"), "SANDBOX": "true", "LOG_LEVEL": "warning"}
    environ |= {"SKILLS_GIT": f"file://{tmp_path}/team@HEAD"}
    async with (
        CommandLine(["serve", "--port", "0"], environ) as process,
        httpx.AsyncClient(base_url=process.url, timeout=30) as http,
    ):
        assert (await http.post("/skills/refresh")).json()["sources"][1]["problems"] == []
        assert await names(http, "?source=git") == ["rollback"]
    (tmp_path / "team").rename(tmp_path / "gone")
    async with (
        CommandLine(["serve", "--port", "0"], environ) as process,
        httpx.AsyncClient(base_url=process.url, timeout=30) as http,
    ):
        assert await names(http, "?source=git") == ["rollback"]
        refreshed = (await http.post("/skills/refresh")).json()["sources"][1]
        assert (refreshed["count"], len(refreshed["problems"])) == (1, 1)
