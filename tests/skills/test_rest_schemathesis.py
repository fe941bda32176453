"""Schemathesis against the skills API of a running supervisor: generated requests, conforming and not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.servers import serving

KEY = "correct-horse-battery"
STORED: Final = "stored-skill"
SKILL: Final = {
    "content": f"---\nname: {STORED}\ndescription: Is stored.\n---\n\nDo it.\n",
    "files": {"notes.md": "Notes."},
}
CHECKS: Final[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
BOUNDED: Final = settings(
    max_examples=10,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)


def strategies(operation: APIOperation[Any, Any, Any]) -> Iterator[Any]:
    yield operation.as_strategy(GenerationMode.POSITIVE)
    yield operation.as_strategy(GenerationMode.NEGATIVE)
    if "{name}" in operation.path:
        # Generated names are those of no skill.
        path = {"name": STORED} | ({"path": "notes.md"} if "{path}" in operation.path else {})
        yield operation.as_strategy(GenerationMode.POSITIVE, path_parameters=path)
        if operation.method == "put":
            headers = {"If-Match": "*"}
            yield operation.as_strategy(
                path_parameters=path, query={}, headers=headers, body=SKILL, media_type="application/json"
            )


def exercise(url: str, headers: dict[str, str]) -> set[tuple[str, int]]:
    """Every operation with its statuses; an answer that is not as documented raises."""
    seen: set[tuple[str, int]] = set()

    def answer(case: Case) -> None:
        response = case.call(headers=headers)
        seen.add((f"{case.method} {case.operation.path}", response.status_code))
        case.validate_response(response, checks=CHECKS, headers=headers)

    api = schemathesis.openapi.from_url(f"{url}/openapi.json", headers=headers)
    for operation in sorted(
        (found.ok() for found in api.get_all_operations()), key=lambda each: each.method == "delete"
    ):
        for strategy in strategies(operation):
            # An operation without parameters has no requests that do not conform.
            with suppress(Unsatisfiable):
                BOUNDED(given(strategy)(answer))()
    return seen


@pytest.mark.parametrize("key", [None, KEY])
async def test_generated_requests_get_documented_answers(tmp_path: Path, key: str | None) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "SKILLS_CRAWL_HOSTS": "127.0.0.1"}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        serving(create_app, environ | ({"A2A_AUTH_SHARED_KEY": key} if key else {})) as url,
        httpx.AsyncClient(base_url=url, headers=headers) as http,
    ):
        assert (await http.post("/skills", json=SKILL)).status_code == 201
        seen = await asyncio.to_thread(exercise, url, headers)
        documented = (await http.get("/openapi.json")).json()["paths"]
    operations = {f"{method.upper()} {path}" for path, methods in documented.items() for method in methods}
    assert {operation for operation, _ in seen} == operations
    answered = {operation for operation, status in seen if status in {200, 201, 204}}
    assert answered == operations - {"POST /skills", "DELETE /skills/{name}", "POST /skill-hubs/crawl"}


async def test_without_the_key_every_operation_is_refused_as_documented(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "A2A_AUTH_SHARED_KEY": KEY}
    async with serving(create_app, environ) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.get("/openapi.json")).status_code == 401
        api = (await http.get("/openapi.json", headers={"Authorization": f"Bearer {KEY}"})).json()
        for path, methods in api["paths"].items():
            for method, operation in methods.items():
                refused = await http.request(method, path.format(name=STORED, path="notes.md"))
                assert refused.status_code == 401
                assert set(refused.json()) == {"error", "message"}
                assert operation["responses"]["401"]["content"]["application/json"]["schema"]
