"""`/metrics` of `serve --workers 2`: a scrape of any worker has the numbers of both."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.utils.a2a_common.server.worker_metrics import worker_directory
from tests.servers import CommandLine, calling
from tests.utils.a2a_common.job_replicas import eventually
from tests.utils.a2a_common.test_metrics import Scrape

pytest_plugins = ("tests.services.fixtures",)

SECONDS = 120
QUESTION = "show argocd version"


def workers_of(command: CommandLine) -> list[int]:
    assert command.process is not None
    parent = command.process.pid
    return [*map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split())]


def state_of(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


@asynccontextmanager
async def suspended(process: int) -> AsyncIterator[None]:
    async def is_stopped() -> bool:
        return state_of(process) == "T"

    os.kill(process, signal.SIGSTOP)
    try:
        await eventually(is_stopped)
        yield
    finally:
        os.kill(process, signal.SIGCONT)


async def ask(url: str) -> None:
    async with calling(url) as caller:
        await caller.ask(QUESTION)


async def scrape(url: str) -> Scrape:
    async with httpx.AsyncClient(timeout=SECONDS) as client:
        response = await client.get(f"{url}/metrics")
    assert response.status_code == 200, response.text
    return Scrape(response.text)


async def scrape_of_both(url: str, *, count: int) -> Scrape:
    """The first scrape that both workers have answered. All others have the same count."""
    async with asyncio.timeout(SECONDS):
        while (found := await scrape(url))("workers") != 2:
            assert completed(found) == count
    assert completed(found) == count
    return found


def completed(found: Scrape) -> float | None:
    count = found("run_duration_seconds_count", outcome="completed")
    assert count == found("run_duration_seconds_bucket", outcome="completed", le="+Inf")
    assert count == found("delegations_total", agent="argocd", outcome="ok")
    assert count == found("runs_ended_total", outcome="completed", code="")
    return count


def processes(found: Scrape) -> set[str]:
    return {sample.labels["worker"] for sample in found.families["process_resident_memory_bytes"].samples}


@pytest.mark.long
@pytest.mark.process
async def test_a_scrape_of_any_worker_has_the_numbers_of_all(tmp_path: Path, database: str) -> None:
    environ = {
        "EVENT_LOG": "postgres",
        "LANGGRAPH_CHECKPOINT_POSTGRES_DSN": database,
        "DATA_DIR": str(tmp_path),
        "TMPDIR": "/tmp",  # noqa: S108 - the path of a socket must be short
        "SANDBOX": "true",
    }
    async with CommandLine(["serve", "--workers", "2", "--port", "0"], environ) as command:
        first, second = workers_of(command)
        async with suspended(first):
            await ask(command.url)
            found = await scrape(command.url)
            assert (completed(found), found("workers")) == (1, 1)
        async with suspended(second):
            await ask(command.url)
            await ask(command.url)
            found = await scrape(command.url)
            assert (completed(found), found("workers")) == (3, 1)

        for _ in range(10):
            assert completed(await scrape(command.url)) == 3
        found = await scrape_of_both(command.url, count=3)
        assert processes(found) == {"1", "2"}
        assert "python_gc_collections" not in found.families

        os.kill(second, signal.SIGKILL)
        while second in workers_of(command):
            assert completed(await scrape(command.url)) == 3
        await scrape_of_both(command.url, count=3)
        async with suspended(first):
            await ask(command.url)
            assert completed(await scrape(command.url)) == 4
        found = await scrape_of_both(command.url, count=4)
        assert found("runs_in_progress") == 0


@pytest.mark.parametrize("name", ["missing", "x" * 100])
def test_a_temporary_directory_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name != "missing":
        (tmp_path / name).mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
    with pytest.raises(SettingsError, match=r"--workers 2 needs .* Set TMPDIR"), worker_directory(2):
        raise AssertionError("it was used")
