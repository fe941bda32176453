"""Servers over streamable HTTP: a public one, and one that misbehaves on demand."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from httpcore._async import http11
from langchain_core.tools import ToolException

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers, McpUnavailable, streamable_http
from tests.integrations.slack_bot.virtual_clock import VirtualClock
from tests.mcp.scripted_http import ScriptedHttp, scripted_http
from tests.mcp.support import HttpServer, Start, eventually, names, tool


@pytest.fixture
async def remote() -> AsyncIterator[ScriptedHttp]:
    async with scripted_http() as server:
        yield server


def entry(url: str, **more: object) -> McpServer:
    return McpServer(name="remote", transport="http", url=url, **more)


async def test_a_public_server(mcp_servers: Start, http_server: HttpServer) -> None:
    servers = await mcp_servers(http_server.entry)
    assert servers.problem("demo") is None
    assert await tool(servers, "echo").ainvoke({"message": "hello"}) == "Echo: hello"
    with pytest.raises(ToolException):
        await tool(servers, "get-sum").ainvoke({"a": "one"})


async def test_restarted_on_the_same_port(mcp_servers: Start, http_server: HttpServer) -> None:
    """A restart between two calls goes unnoticed, although the new server does not know the session."""
    servers = await mcp_servers(http_server.entry)
    echo = tool(servers, "echo")
    assert await echo.ainvoke({"message": "one"}) == "Echo: one"
    http_server.kill()
    await http_server.start()
    answers = await asyncio.gather(*(echo.ainvoke({"message": str(number)}) for number in range(20)))
    assert answers == [f"Echo: {number}" for number in range(20)]


async def test_killed_in_mid_call(mcp_servers: Start, http_server: HttpServer) -> None:
    servers = await mcp_servers(http_server.entry, MCP_RESTART_BACKOFF="0.1")
    # The handshake has three: two requests and a notification.
    await eventually(lambda: http_server.posts == 3)
    slow = asyncio.create_task(tool(servers, "trigger-long-running-operation").ainvoke({"duration": 60, "steps": 2}))
    await eventually(lambda: http_server.posts == 4)
    http_server.kill()
    with pytest.raises(McpUnavailable, match="while trigger-long-running-operation was running"):
        await asyncio.wait_for(slow, 90)
    await http_server.start()
    assert await asyncio.wait_for(tool(servers, "echo").ainvoke({"message": "again"}), 90) == "Echo: again"


async def test_a_server_that_comes_up_late(
    mcp_servers: Start, everything_script: Path, unused_port: int, tmp_path: Path
) -> None:
    late = HttpServer(everything_script, unused_port, tmp_path / "output")
    servers = await mcp_servers(late.entry, MCP_RESTART_BACKOFF="0.1", MCP_RESTART_BACKOFF_MAX="0.2")
    changed: list[str] = []
    servers.on_change(changed.append)
    assert (
        servers.problem("demo")
        == f"The everything server could not be reached at 127.0.0.1:{late.port} (connection refused)."
    )
    try:
        await late.start()
        await eventually(lambda: changed[:1] == ["demo"])
        assert await tool(servers, "echo").ainvoke({"message": "late"}) == "Echo: late"
        assert servers.problem("demo") is None
    finally:
        late.kill()


async def test_headers_are_sent_with_every_request(mcp_servers: Start, remote: ScriptedHttp) -> None:
    remote.required_token = "t0ken"
    servers = await mcp_servers(entry(remote.url, headers={"Authorization": "Bearer ${PAT}"}), PAT="t0ken")
    assert await tool(servers, "echo").ainvoke({"a": 1}) == '{"a": 1}'
    assert {headers["authorization"] for headers in remote.headers} == {"Bearer t0ken"}
    assert remote.headers[-1]["mcp-session-id"] == "session-1"
    assert remote.headers[-1]["mcp-protocol-version"]


async def test_refused_credentials(mcp_servers: Start, remote: ScriptedHttp, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "ai_platform_engineering")
    remote.required_token = "another"
    servers = await mcp_servers(entry(remote.url, headers={"Authorization": "Bearer ${PAT}"}), PAT="t0ken-t0ken")
    assert servers.problem("demo") == (
        "The remote server refused the credentials (HTTP 401 Unauthorized); check the headers in the manifest."
    )
    assert "t0ken-t0ken" not in caplog.text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("busy", "answered HTTP 503 Service Unavailable while busy was running."),
        ("bad", "answered HTTP 400 Bad Request. bad was not run."),
        ("cut", "broke off the connection while cut was running."),
        ("silent", "closed the connection without an answer while silent was running."),
        ("html", "answered with text/html instead of JSON or events while html was running."),
        pytest.param("hang", "did not answer within 3 seconds while hang was running.", marks=pytest.mark.long),
    ],
)
async def test_one_failing_call(mcp_servers: Start, remote: ScriptedHttp, name: str, reason: str) -> None:
    """It fails at once and by itself, and it is not sent again."""
    servers = await mcp_servers(entry(remote.url), TOOL_TIMEOUT="3" if name == "hang" else "30")
    with pytest.raises(McpUnavailable) as failure:
        await tool(servers, name).ainvoke({})
    assert str(failure.value).startswith(f"The remote server {reason}")
    assert await tool(servers, "echo").ainvoke({}) == "{}"
    methods = [method if method != "tools/call" else params["name"] for method, params in remote.seen]
    assert methods.count(name) == 1
    assert methods.count("initialize") == 1, "the session went on"


async def test_a_lost_stream_is_read_to_its_end(mcp_servers: Start, remote: ScriptedHttp) -> None:
    servers = await mcp_servers(entry(remote.url))
    assert await tool(servers, "resumable").ainvoke({}) == "resumed"
    assert remote.resumed_after == "e1"


async def test_a_session_the_server_has_forgotten(
    mcp_servers: Start, remote: ScriptedHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On busy cores the server may need longer for its answers to the calls in flight.
    monkeypatch.setattr(streamable_http, "_END_GRACE", 30)
    servers = await mcp_servers(entry(remote.url))
    remote.session = "session-2"
    calls = (tool(servers, "echo").ainvoke({"n": number}) for number in range(20))
    assert await asyncio.gather(*calls) == [f'{{"n": {number}}}' for number in range(20)]
    assert [method for method, _ in remote.seen].count("initialize") == 2


async def test_a_server_without_sessions(mcp_servers: Start, remote: ScriptedHttp) -> None:
    remote.stateless = True
    servers = await mcp_servers(entry(remote.url))
    assert await tool(servers, "echo").ainvoke({}) == "{}"
    await servers.aclose()
    assert ("DELETE", {}) not in remote.seen


async def test_an_idle_connection_is_closed_before_the_server_would_close_it(
    mcp_servers: Start, remote: ScriptedHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = VirtualClock()
    monkeypatch.setattr(http11, "time", SimpleNamespace(monotonic=clock.now))
    remote.stateless = True
    servers = await mcp_servers(entry(remote.url))
    for idle in (0, 2, 4):  # uvicorn and Node close an idle connection after 5 s
        clock.advance(idle)
        await tool(servers, "echo").ainvoke({})
    first, second, third = remote.peers[-3:]
    assert first == second
    assert second != third


async def test_closing_ends_the_session(mcp_servers: Start, remote: ScriptedHttp) -> None:
    servers = await mcp_servers(entry(remote.url))
    hanging = asyncio.create_task(tool(servers, "hang").ainvoke({}))
    await eventually(lambda: remote.seen[-1][1].get("name") == "hang")
    began = time.monotonic()
    await servers.aclose()
    assert time.monotonic() - began < 15
    assert remote.seen[-1][0] == "DELETE"
    with pytest.raises(McpUnavailable, match="stopped while hang was running"):
        await hanging


async def test_a_cancelled_call_is_cancelled_at_the_server(mcp_servers: Start, remote: ScriptedHttp) -> None:
    servers = await mcp_servers(entry(remote.url))
    hanging = asyncio.create_task(tool(servers, "hang").ainvoke({}))
    await eventually(lambda: remote.seen[-1][1].get("name") == "hang")
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    await eventually(lambda: remote.seen[-1][0] == "notifications/cancelled")


async def test_what_the_server_says_unasked(mcp_servers: Start, remote: ScriptedHttp) -> None:
    servers = await mcp_servers(entry(remote.url))
    await remote.unasked.put({"method": "notifications/tools/list_changed"})
    await eventually(lambda: [method for method, _ in remote.seen].count("tools/list") == 2)
    assert servers.problem("demo") is None


async def test_a_redirect_on_the_same_server_is_followed(mcp_servers: Start, remote: ScriptedHttp) -> None:
    servers = await mcp_servers(entry(f"http://127.0.0.1:{remote.port}/moved"))
    assert await tool(servers, "echo").ainvoke({}) == "{}"


async def test_a_redirect_elsewhere_is_not_followed(mcp_servers: Start, remote: ScriptedHttp) -> None:
    """The headers are meant for the address in the manifest and for no other."""
    remote.redirect_to = f"http://localhost:{remote.port}/mcp"
    servers = await mcp_servers(entry(f"http://127.0.0.1:{remote.port}/moved", headers={"X-Key": "k"}))
    assert remote.seen == []
    assert "answered with a redirect (HTTP 307 Temporary Redirect)" in (servers.problem("demo") or "")


async def test_a_server_that_is_down_fails_calls_quickly(mcp_servers: Start, http_server: HttpServer) -> None:
    servers = await mcp_servers(http_server.entry, MCP_RESTART_BACKOFF="30")
    echo = tool(servers, "echo")
    http_server.kill()
    await eventually(lambda: servers.problem("demo") is not None)
    began = time.monotonic()
    with pytest.raises(
        McpUnavailable,
        match=r"127\.0\.0\.1:\d+ \(connection refused\)\. echo was not run; the next start is in \d+ seconds\.",
    ):
        await echo.ainvoke({"message": "hello"})
    assert time.monotonic() - began < 15


@pytest.mark.parametrize("url", ["ftp://example.org/mcp", "not an address", "http://"])
async def test_an_address_that_is_none(mcp_servers: Start, url: str) -> None:
    servers = await mcp_servers(entry(url))
    assert servers.problem("demo") == (
        "The remote server was not contacted because its 'url' is not an http or https address."
    )


async def test_no_server_at_the_address(mcp_servers: Start, unused_port: int) -> None:
    servers: McpServers = await mcp_servers(entry(f"http://user:pass@127.0.0.1:{unused_port}/mcp?key=k"))
    assert names(servers) == []
    assert servers.problem("demo") == (
        f"The remote server could not be reached at 127.0.0.1:{unused_port} (connection refused)."
    )
