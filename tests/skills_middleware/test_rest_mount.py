"""The skills API beside the other routes of the supervisor: nothing else changes, and nothing is loaded early."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest
from starlette.routing import Mount

from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.agent import (
    AIPlatformEngineerA2ABinding,
)
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.skills_middleware.mas_registry import get_mas_instance, set_mas_instance
from ai_platform_engineering.skills_middleware.rest.mount import is_skills_path
from tests.servers import ROOT
from tests.skills_middleware.rest_servers import ANY, KEY, body, supervisor


def test_the_api_is_mounted_at_the_root_after_all_other_routes(tmp_path: Path) -> None:
    routes = create_app(load_settings({"DATA_DIR": str(tmp_path)}, None)).routes
    assert [route.path for route in routes if isinstance(route, Mount)] == ["/rag", ""]
    assert routes[-1].path == ""  # type: ignore[attr-defined]


async def test_other_routes_answer_as_they_do_without_it(tmp_path: Path) -> None:
    async with supervisor(tmp_path) as http:
        for method, path, status in (
            ("PUT", "/", 405),
            ("GET", "/nothing", 404),
            ("GET", "/skillsets", 404),
            ("GET", "/docs/x", 404),
            ("GET", "/internal", 404),
            ("POST", "/healthz", 405),
            ("DELETE", "/workflows", 405),
            ("GET", "/healthz/", 307),
            ("GET", "/rag/v1/datasources", 200),
            ("GET", "/tasks", 200),
            ("GET", "/v1/tasks/unknown", 404),
            ("GET", "/feedback", 200),
            ("GET", "/skills", 200),
        ):
            answer = await http.request(method, path)
            assert (answer.status_code, path) == (status, path)
            is_ours = answer.headers.get("content-type") == "application/problem+json"
            assert is_skills_path(path) or not is_ours


def test_fastapi_is_imported_by_the_first_skills_request_only(tmp_path: Path) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "tests.skills_middleware.lazy_server", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    assert json.loads(printed.splitlines()[-1]) == {
        "before": [200, 404, 200, "FinalResult", False],
        "after": [200, True],
    }


def test_the_supervisor_is_registered_with_its_binding(tmp_path: Path) -> None:
    set_mas_instance(None)
    assert get_mas_instance() is None
    mas = PlatformEngineerDeepAgent(load_settings({"DATA_DIR": str(tmp_path)}, None))
    binding = AIPlatformEngineerA2ABinding(mas)
    assert get_mas_instance() is mas
    del mas, binding
    gc.collect()
    assert get_mas_instance() is None


async def test_the_card_lists_global_skills_as_they_are_now(tmp_path: Path) -> None:
    async with supervisor(tmp_path) as http:
        first = await http.get("/.well-known/agent-card.json")
        assert "skill-hello" not in first.text
        for number in range(60):
            await http.post("/skills", json=body(f"a-{number:02}"))
        await http.post("/skills", json=body("a-0", description="Is first.", tags="x, y"))
        second = await http.get("/.well-known/agent-card.json", headers={"If-None-Match": first.headers["etag"]})
        assert second.status_code == 200
        card = second.json()
        agents = [entry["id"] for entry in first.json()["skills"] if not entry["id"].startswith("skill-")]
        assert [entry["id"] for entry in card["skills"]][: len(agents)] == agents
        listed = card["skills"][len(agents) :]
        assert len(listed) == 50
        assert listed[0] == {
            "id": "skill-a-0",
            "name": "a-0",
            "description": "Is first.",
            "tags": ["skill", "x", "y"],
            "examples": ["/a-0"],
        }
        known = {"If-None-Match": second.headers["etag"]}
        assert (await http.get("/.well-known/agent-card.json", headers=known)).status_code == 304
        await http.delete("/skills/a-0", headers=ANY)
        assert "skill-a-0" not in [
            entry["id"] for entry in (await http.get("/.well-known/agent.json", headers=known)).json()["skills"]
        ]


@pytest.mark.parametrize("path", ["/skills", "/openapi.json", "/docs", "/internal/supervisor/skills-status"])
async def test_the_api_needs_the_key_as_all_else_does(tmp_path: Path, path: str) -> None:
    async with supervisor(tmp_path, A2A_AUTH_SHARED_KEY=KEY) as http:
        assert (await http.get(path)).status_code == 401
        assert (await http.get(path, headers={"Authorization": f"Bearer {KEY}"})).status_code == 200
