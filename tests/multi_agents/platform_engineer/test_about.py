"""`GET /about` of a supervisor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from ai_platform_engineering.installation import product_version
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.servers import serving


async def about(environ: dict[str, str]) -> dict[str, Any]:
    async with serving(create_app, environ) as url, httpx.AsyncClient(base_url=url) as http:
        response = await http.get("/about")
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"DATA_DIR": str(tmp_path)}


async def test_a_supervisor_without_settings(environ: dict[str, str]) -> None:
    found = await about(environ)
    suggestions = found.pop("suggestions")
    assert found == {
        "version": product_version(),
        "model": {"provider": "offline", "name": "offline", "offline": True},
        "knowledge_base": True,
        "memories": False,
        "sandbox": True,
        "agent_titles": {
            "argocd": "Argo CD",
            "github": "GitHub",
            "jira": "Jira",
            "netutils": "Network tools",
            "pagerduty": "PagerDuty",
        },
        "degraded": None,
    }
    assert [row["agent"] for row in suggestions] == [*found["agent_titles"], "argocd", "github", "jira"]
    assert suggestions[0] == {"agent": "argocd", "question": "show argocd version"}
    assert len({row["question"] for row in suggestions}) == 8


async def test_no_secrets_and_no_questions_that_nobody_can_answer(environ: dict[str, str], unused_port: int) -> None:
    found = await about(
        {
            **environ,
            "LLM_PROVIDER": "openai",
            "OPENAI_API_KEY": "sk-secret-0123456789",
            "OPENAI_ENDPOINT": "http://user:secret@127.0.0.1:1/v1",
            "MODEL_NAME": "gpt-5",
            "ENABLE_RAG": "false",
            "SANDBOX": "true",
            "ENABLE_NETUTILS": "false",
            "DISTRIBUTED_AGENTS": "argocd,github,jira",
            "ARGOCD_AGENT_URL": f"http://user:secret@127.0.0.1:{unused_port}",
            "GITHUB_AGENT_URL": f"http://127.0.0.1:{unused_port}",
            "JIRA_AGENT_URL": f"http://127.0.0.1:{unused_port}",
            "STARS_AGENT_URL": f"http://127.0.0.1:{unused_port}",
            "AGENT_CONNECTIVITY_TIMEOUT": "1",
        }
    )
    assert found["model"] == {"provider": "openai", "name": "gpt-5", "offline": False}
    assert found["knowledge_base"] is False
    assert found["agent_titles"]["stars"] == "Stars"
    assert {row["agent"] for row in found["suggestions"]} == {"pagerduty"}
    assert "secret" not in str(found)


async def test_a_supervisor_that_works_in_part_says_why(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "conversations.db").write_bytes(b"not a database" * 100)
    assert "conversations" in (await about(environ))["degraded"].lower()


async def test_about_needs_authentication(environ: dict[str, str]) -> None:
    app_environ = {**environ, "A2A_AUTH_SHARED_KEY": "0123456789abcdef"}
    async with serving(create_app, app_environ) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/about")).status_code == 401
        http.headers["Authorization"] = "Bearer 0123456789abcdef"
        assert (await http.get("/about")).status_code == 200
