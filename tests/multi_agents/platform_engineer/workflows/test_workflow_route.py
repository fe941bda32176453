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
