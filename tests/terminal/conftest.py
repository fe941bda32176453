from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from ai_platform_engineering.terminal.background import BackgroundLoop
from tests.servers import CommandLine
from tests.terminal.asking import Asker, asking
from tests.terminal.tmux import Terminal, terminal_problem


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def supervisor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommandLine]:
    """A supervisor elsewhere, whose model writes quickly."""
    environ = {"DATA_DIR": str(tmp_path_factory.mktemp("data")), "OFFLINE_MODEL_DELAY": "0.005"}
    async with CommandLine(["serve", "--port", "0"], environ) as process:
        yield process


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def slow_supervisor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CommandLine]:
    """One that leaves time to interrupt it."""
    environ = {"DATA_DIR": str(tmp_path_factory.mktemp("data")), "OFFLINE_MODEL_DELAY": "0.3"}
    async with CommandLine(["serve", "--port", "0"], environ) as process:
        yield process


@pytest.fixture
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    if problem := terminal_problem():
        pytest.skip(problem)
    opened = Terminal(tmp_path_factory.mktemp("terminal"))
    try:
        yield opened
    finally:
        opened.close()


@dataclass(frozen=True)
class AskingSupervisor:
    url: str
    asker: Asker


@pytest.fixture
def asking_supervisor() -> Iterator[AskingSupervisor]:
    """One whose requests wait for forms and approvals; it runs beside the test, which may wait for a terminal."""
    with BackgroundLoop() as background:
        yield AskingSupervisor(*background.enter_context(asking()))
