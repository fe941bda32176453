"""A tool server behind MCP, as its clients see it: over standard input and output, and over HTTP."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.tools import ToolException
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel

from ai_platform_engineering.installation import product_version
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers
from ai_platform_engineering.mcp.protocol import http_app
from ai_platform_engineering.mcp.tool_server import ToolError, ToolResult, ToolServer
from tests.mcp import tool_depot
from tests.mcp.support import Start, names, tool
from tests.servers import serving
from tests.tool_sessions import session_with

ROOT = Path(__file__).parents[2]
JSON_HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
REFUSALS: list[tuple[str, dict[str, str], str]] = [
    ("delete", {"name": "guestbook"}, "guestbook is protected"),
    ("declared_failure", {}, "no such thing"),
    ("crash", {}, "crash failed unexpectedly."),
    ("delete", {}, "delete was called with wrong arguments: name: Missing required argument."),
]


class Clock(BaseModel):
    at: datetime


@pytest.fixture(params=["stdio", "http", "stateless http"])
async def depot(request: pytest.FixtureRequest, mcp_servers: Start) -> AsyncIterator[McpServers]:
    if request.param == "stdio":
        environ = {"PYTHONPATH": str(ROOT), "PLACE": "Zürich"}
        command = {"command": sys.executable, "args": ("-m", "tests.mcp.tool_depot"), "env": environ}
        yield await mcp_servers(McpServer(name="depot", transport="stdio", **command))
        return
    stateless = request.param != "http"

    def app_of(settings: Any) -> Any:
        return http_app(tool_depot.server(settings), "/mcp", stateless=stateless, json_response=stateless)

    async with serving(app_of, {"PLACE": "Zürich"}) as url:
        servers = await mcp_servers(McpServer(name="depot", transport="http", url=f"{url}/mcp"))
        yield servers
        await servers.aclose()


async def test_its_tools_are_those_of_any_server(depot: McpServers) -> None:
    assert depot.problem("demo") is None
    assert "applications" in names(depot)
    assert (tool(depot, "delete").metadata or {})["destructive"] is True
    assert await tool(depot, "version").ainvoke({}) == "v1 in Zürich"
    assert await tool(depot, "applications").ainvoke({"limit": "1"}) == '[{"name":"0"}]'
    assert await tool(depot, "is_open").ainvoke({}) == "true"
    for name, arguments, message in REFUSALS:
        with pytest.raises(ToolException) as failure:
            await tool(depot, name).ainvoke(arguments)
        assert str(failure.value) == message


@pytest.fixture
def clock() -> ToolServer:
    server = ToolServer("clock", "Ask for the time.")

    async def now() -> ToolResult:
        """The time."""
        at = datetime(2026, 1, 2, tzinfo=UTC)
        return ToolResult(f"{at:%H:%M}", {"at": at})

    async def stop() -> str:
        """Stop the clock."""
        raise ToolError("Time goes on.")

    server.tool(now, output=Clock)
    server.tool(stop)
    return server


async def test_what_a_client_is_told_of_the_server(clock: ToolServer) -> None:
    async with session_with(clock) as session:
        initialized = await session.initialize()
    assert (initialized.serverInfo.name, initialized.serverInfo.version) == ("clock", product_version())
    assert initialized.instructions == "Ask for the time."
    assert initialized.capabilities.tools is not None
    assert (initialized.capabilities.prompts, initialized.capabilities.resources) == (None, None)


async def test_a_result_is_text_and_an_object(clock: ToolServer) -> None:
    async with session_with(clock) as session:
        assert await session.call_tool("now", {}) == CallToolResult(
            content=[TextContent(type="text", text="00:00")], structuredContent={"at": "2026-01-02T00:00:00Z"}
        )
        assert await session.call_tool("stop") == CallToolResult(
            content=[TextContent(type="text", text="Time goes on.")], isError=True
        )
        unknown = await session.call_tool("wind", {})
    assert (unknown.isError, unknown.content) == (
        True,
        [TextContent(type="text", text="There is no tool named wind.")],
    )


async def test_without_state_a_request_is_answered_on_its_own(clock: ToolServer) -> None:
    request = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "now"}}
    async with (
        serving(lambda _settings: http_app(clock, "/mcp", stateless=True, json_response=True), {}) as url,
        httpx.AsyncClient(base_url=url, headers=JSON_HEADERS, timeout=60) as http,
    ):
        answer = await http.post("/mcp", json=request)
        assert answer.headers["content-type"] == "application/json"
        assert "mcp-session-id" not in answer.headers
        assert answer.json()["result"]["structuredContent"] == {"at": "2026-01-02T00:00:00Z"}
        assert (await http.get("/mcp")).status_code == 405
        assert (await http.post("/", json=request)).status_code == 404


async def test_a_lifespan_is_the_apps_and_not_a_sessions() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        seen.append("open")
        yield
        seen.append("closed")

    app = http_app(ToolServer("demo", lifespan=lifespan), "/mcp")
    for _ in range(2):
        async with serving(lambda _settings: app, {}) as url:
            for _ in range(2):
                async with mcp_client(f"{url}/mcp") as session:
                    assert (await session.list_tools()).tools == []
            assert seen.pop() == "open"
        assert seen.pop() == "closed"
    assert seen == []


async def test_a_call_that_a_client_gives_up_is_cancelled(mcp_servers: Start) -> None:
    began, ended = asyncio.Event(), asyncio.Event()
    server = ToolServer("slow")

    @server.tool
    async def wait() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async with serving(lambda _settings: http_app(server, "/mcp"), {}) as url:
        servers = await mcp_servers(McpServer(name="slow", transport="http", url=f"{url}/mcp"))
        call = asyncio.create_task(tool(servers, "wait").ainvoke({}))
        await began.wait()
        call.cancel()
        async with asyncio.timeout(90):
            await ended.wait()
        await servers.aclose()


@asynccontextmanager
async def mcp_client(url: str) -> AsyncIterator[ClientSession]:
    async with (
        httpx.AsyncClient(timeout=60) as http,
        streamable_http_client(url, http_client=http) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session
