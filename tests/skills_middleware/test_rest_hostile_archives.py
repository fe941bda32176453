"""The corpus of hostile archives, posted to the skills API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from tests.skills_middleware.hostile_archives import HOSTILE_ARCHIVES, HostileArchive
from tests.skills_middleware.rest_servers import names, problem, supervisor

pytestmark = pytest.mark.asyncio(loop_scope="module")
ARCHIVE = {"Content-Type": "application/octet-stream"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def http(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    folder: Path = tmp_path_factory.mktemp("data")
    async with supervisor(folder) as client:
        yield client
        assert await names(client, "?source=api") == []
        assert not (folder / "skills.db").exists()


@pytest.mark.parametrize("hostile", HOSTILE_ARCHIVES, ids=lambda hostile: hostile.name)
async def test_a_hostile_archive_is_refused_with_the_reason(http: httpx.AsyncClient, hostile: HostileArchive) -> None:
    data = hostile.data
    created = await http.post("/skills", content=data, headers=ARCHIVE)
    if len(data) > 1_000_000:
        # It is refused before it is opened.
        problem(created, 413)
        return
    problem(created, 422)
    assert hostile.code in {each["code"] for each in created.json()["problems"]}
    validated = await http.post("/skills/validate", content=data, headers=ARCHIVE)
    assert validated.status_code == 200
    assert validated.json()["valid"] is False
    assert validated.json()["problems"] == created.json()["problems"]
