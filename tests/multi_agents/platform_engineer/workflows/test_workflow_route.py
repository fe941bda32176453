from __future__ import annotations

from pathlib import Path

import httpx

from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.servers import serving


async def test_surfaces_are_told_which_workflows_can_be_started(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "ENABLE_PAGERDUTY": "false"}
    async with serving(create_app, environ) as url, httpx.AsyncClient() as http:
        rows = {row["name"]: row for row in (await http.get(f"{url}/workflows")).json()["workflows"]}
    assert rows["create_github_repo"]["ready"] is True
    assert rows["create_github_repo"]["title"] == "Create GitHub Repo"
    assert rows["escalate_incident"]["ready"] is False
    assert "pagerduty" in rows["escalate_incident"]["reason"]


async def test_a_workflow_is_listed_with_its_inputs_and_steps(tmp_path: Path) -> None:
    async with serving(create_app, {"DATA_DIR": str(tmp_path), "SANDBOX": "true"}) as url, httpx.AsyncClient() as http:
        rows = {row["name"]: row for row in (await http.get(f"{url}/workflows")).json()["workflows"]}
    rollback = rows["roll_back_application"]
    assert rollback["inputs"][-1] == {
        "name": "new_ticket",
        "type": "boolean",
        "description": "Whether to open a new Jira ticket about it",
        "required": True,
        "default": False,
        "options": [],
    }
    assert rollback["steps"][:2] == [
        {"title": "Roll the application back", "agent": "argocd", "tool": "rollback_application", "when": None},
        {"title": "Comment on the ticket", "agent": "jira", "tool": None, "when": "{{ inputs.ticket }} is set"},
    ]
