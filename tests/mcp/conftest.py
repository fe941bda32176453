"""Servers for the tests of the MCP layer: public ones that are found or installed once, and a scripted one."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest
from mcp.types import RequestId

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.mcp.connection import InFlightCall
from ai_platform_engineering.mcp.on_behalf_of import Requester
from ai_platform_engineering.settings import Settings, load_settings
from tests.mcp.support import HttpServer

TIME_SERVER = "mcp-server-time==2026.10.19"
EVERYTHING_SERVER = "@modelcontextprotocol/server-everything@2026.8.31"
SCRIPTED_SERVER = Path(__file__).parent / "scripted_server.py"


def not_here(reason: str) -> NoReturn:
    """Skips, or fails where the services are required."""
    if os.environ.get("REQUIRE_SERVICES") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def settings() -> Callable[..., Settings]:
    def make(**variables: str) -> Settings:
        return load_settings({**os.environ, **variables}, env_file=None)

    return make


@pytest.fixture
async def mcp_servers(settings: Callable[..., Settings]) -> AsyncIterator[Callable[..., Awaitable[McpServers]]]:
    """Starts servers for one agent named "demo" and closes them after the test."""
    opened: list[McpServers] = []

    async def start(
        *servers: McpServer, deadline: float = 30, requester: Any = Requester, **variables: str
    ) -> McpServers:
        started = McpServers(settings(**variables), requester=requester)
        opened.append(started)
        await started.start({"demo": servers}, deadline=deadline)
        return started

    yield start
    for started in opened:
        await started.aclose()


@pytest.fixture
def call_sent(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set once a tool call may have reached a server; an earlier end of the server would lead to a retry."""
    sent, record = asyncio.Event(), InFlightCall.sent

    def recorded(call: InFlightCall, request_id: RequestId) -> None:
        record(call, request_id)
        sent.set()

    monkeypatch.setattr(InFlightCall, "sent", recorded)
    return sent


@pytest.fixture
def scripted() -> Callable[..., McpServer]:
    """A server entry for `scripted_server.py`; its arguments say how it behaves."""

    def make(*behaviour: str, name: str = "scripted", **entry: Any) -> McpServer:
        return McpServer(
            name=name, transport="stdio", command=sys.executable, args=(str(SCRIPTED_SERVER), *behaviour), **entry
        )

    return make


@pytest.fixture(scope="session")
def time_server() -> McpServer:
    """A public Python server in an environment of its own, behind a wrapper that starts it as a child."""
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if uv is None:
        not_here("uv is not installed; pip install uv")
    command = ("tool", "run", "--from", TIME_SERVER)
    with suppress(subprocess.TimeoutExpired):
        found = subprocess.run([uv, *command, "python", "-c", ""], capture_output=True, timeout=120, check=False)
        if found.returncode == 0:
            return McpServer(name="time", transport="stdio", command=uv, args=(*command, "mcp-server-time"))
    not_here(f"{TIME_SERVER} cannot be run with uv; is there a package index?")


@pytest.fixture(scope="session")
def everything_script() -> Path:
    """A public Node server that exercises all of MCP, installed once per machine."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        not_here("Node.js with npm is not installed")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ai-platform-engineering-tests"
    home = cache / EVERYTHING_SERVER.replace("/", "-")
    script = home / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    if not script.exists():
        staging = home.with_name(f"{home.name}.{os.getpid()}")
        staging.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", staging]
        done = subprocess.run([*command, EVERYTHING_SERVER], capture_output=True, timeout=180, check=False)
        if done.returncode == 0:
            with suppress(OSError):
                staging.rename(home)
        shutil.rmtree(staging, ignore_errors=True)
    if not script.exists():
        not_here(f"{EVERYTHING_SERVER} cannot be installed with npm; is there a package registry?")
    return script


@pytest.fixture
def everything(everything_script: Path) -> McpServer:
    return McpServer(name="everything", transport="stdio", command="node", args=(str(everything_script), "stdio"))


@pytest.fixture
async def http_server(everything_script: Path, unused_port: int, tmp_path: Path) -> AsyncIterator[HttpServer]:
    server = HttpServer(everything_script, unused_port, tmp_path / "output")
    await server.start()
    yield server
    server.kill()
