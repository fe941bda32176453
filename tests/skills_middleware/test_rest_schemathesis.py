"""Schemathesis against the skills API of a running supervisor: generated requests, conforming and not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import httpx
import pytest

from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.servers import serving

KEY = "correct-horse-battery"
STORED: Final = "stored-skill"
SKILL: Final = {
    "content": f"---\nname: {STORED}\ndescription: Is stored.\n---\n\nDo it.\n",
    "files": {"notes.md": "Notes."},
}


# The key is checked before an operation sees the request, so few requests per operation are enough with it.
@pytest.mark.parametrize(("key", "examples"), [(None, 10), (KEY, 2)], ids=["open", "key"])
async def test_generated_requests_get_documented_answers(tmp_path: Path, key: str | None, examples: int) -> None:
    # Schemathesis takes long to import, and every worker imports all test modules.
    from tests.skills_middleware.generated_requests import exercise

    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "SKILLS_CRAWL_HOSTS": "127.0.0.1"}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        serving(create_app, environ | ({"A2A_AUTH_SHARED_KEY": key} if key else {})) as url,
        httpx.AsyncClient(base_url=url, headers=headers, timeout=60) as http,
    ):
        assert (await http.post("/skills", json=SKILL)).status_code == 201
        seen = await asyncio.to_thread(exercise, url, headers, STORED, SKILL, examples)
        documented = (await http.get("/openapi.json")).json()["paths"]
    operations = {f"{method.upper()} {path}" for path, methods in documented.items() for method in methods}
    assert {operation for operation, _ in seen} == operations
    answered = {operation for operation, status in seen if status in {200, 201, 204}}
    assert answered == operations - {"POST /skills", "DELETE /skills/{name}", "POST /skill-hubs/crawl"}


async def test_without_the_key_every_operation_is_refused_as_documented(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "A2A_AUTH_SHARED_KEY": KEY}
    async with serving(create_app, environ) as url, httpx.AsyncClient(base_url=url, timeout=60) as http:
        assert (await http.get("/openapi.json")).status_code == 401
        api = (await http.get("/openapi.json", headers={"Authorization": f"Bearer {KEY}"})).json()
        for path, methods in api["paths"].items():
            for method, operation in methods.items():
                refused = await http.request(method, path.format(name=STORED, path="notes.md"))
                assert refused.status_code == 401
                assert set(refused.json()) == {"error", "message"}
                assert operation["responses"]["401"]["content"]["application/json"]["schema"]
