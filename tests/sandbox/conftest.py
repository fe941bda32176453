from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.sandbox.store import SandboxStore
from ai_platform_engineering.settings import Settings, load_settings
from tests.tool_sessions import ask

Call = Callable[..., Awaitable[Any]]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"DATA_DIR": str(tmp_path / "data")}, env_file=None)


@pytest.fixture
def store(settings: Settings) -> SandboxStore:
    return SandboxStore.of(settings)


@pytest.fixture
def call(settings: Settings) -> Call:
    """Calls a sandbox tool as an MCP client does: `await call("jira", "get_issue", issue_key="SHOP-118")`."""

    async def _call(product: str, tool: str, **arguments: Any) -> Any:
        server = import_module(f"ai_platform_engineering.sandbox.{product}").server(settings)
        return await ask(server, tool, arguments)

    return _call
