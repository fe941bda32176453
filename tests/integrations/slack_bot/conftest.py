from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.integrations.slack_bot.held_tools import HeldTools, knowledge_base
from tests.integrations.slack_bot.installation import Service, supervisor_with
from tests.integrations.slack_bot.played_model import PlayedModel, played_model
from tests.integrations.slack_bot.standin import Slack, standing_in


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    async with standing_in() as slack:
        yield slack


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def knowledge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HeldTools]:
    async with knowledge_base(tmp_path_factory.mktemp("knowledge")) as tools:
        yield tools


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def supervisor(knowledge: HeldTools, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """The supervisor with the offline model and the sandbox, in a process of its own."""
    service = supervisor_with(tmp_path_factory.mktemp("supervisor"), RAG_SERVER_URL=f"{knowledge.url}/mcp")
    async with service.running():
        yield service


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def model() -> AsyncIterator[PlayedModel]:
    async with played_model() as model:
        yield model


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def thinker(
    model: PlayedModel, knowledge: HeldTools, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Service]:
    """A supervisor whose model says what the test wants, and stops where the test wants."""
    environ = {**model.environ(), "RAG_SERVER_URL": f"{knowledge.url}/mcp"}
    async with supervisor_with(tmp_path_factory.mktemp("thinker"), **environ).running() as service:
        yield service
