"""All servers of a process: concurrent start, names, effects, and warnings about them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp.types import Tool, ToolAnnotations

import tests.mcp.depot  # noqa: F401 - importing it takes longer than the shortest deadline here
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers, McpUnavailable
from ai_platform_engineering.mcp.names import unique_name
from ai_platform_engineering.mcp.sessions import restart_delay
from ai_platform_engineering.mcp.tools import tool_effect
from ai_platform_engineering.settings import Settings, load_settings
from tests.mcp.support import Start, eventually, names, tool

Scripted = Callable[..., McpServer]


def memory(name: str, attribute: str = "plain", **more: Any) -> McpServer:
    return McpServer(name=name, transport="memory", module=f"tests.mcp.depot:{attribute}", **more)


async def test_servers_start_side_by_side(mcp_servers: Start, scripted: Scripted, tmp_path: Path) -> None:
    """Each waits for the others before it answers."""
    meet = ("meet=6", f"meeting={tmp_path}")
    servers = await mcp_servers(*(scripted(*meet, f"tools=t{n}", name=f"s{n}") for n in range(6)))
    assert names(servers) == [f"t{n}" for n in range(6)]


async def test_the_deadline_holds(mcp_servers: Start, scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    """A server that never answers does not delay the others."""
    began = time.monotonic()
    servers = await mcp_servers(scripted("mute", name="mute"), memory("quick"), deadline=3)
    assert 3 <= time.monotonic() - began < 30
    assert names(servers) == ["version"]
    assert servers.problem("demo") == "The mute server is still starting."
    assert servers.starting("demo")
    assert "demo starts without one of its servers: The mute server is still starting." in caplog.text


async def test_a_late_server_announces_its_tools(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted("start-delay=1", "tools=late"), deadline=0.1)
    changed: list[str] = []
    servers.on_change(changed.append)
    assert names(servers) == []
    await eventually(lambda: changed == ["demo"])
    assert names(servers) == ["late"]
    assert servers.problem("demo") is None


async def test_nothing_is_announced_while_starting(settings: Callable[..., Settings]) -> None:
    servers = McpServers(settings())
    changed: list[str] = []
    servers.on_change(changed.append)
    await servers.start({"demo": [memory("one")]}, deadline=60)
    assert names(servers) == ["version"]
    assert changed == []
    await servers.aclose()


async def test_a_listener_that_fails_does_no_harm(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted("start-delay=0.3"), deadline=0.1)
    changed: list[str] = []
    servers.on_change(lambda _: 1 / 0)  # type: ignore[arg-type, return-value]
    servers.on_change(changed.append)
    await eventually(lambda: changed == ["demo"])
    assert await tool(servers, "echo").ainvoke({}) == "{}"


async def test_a_server_that_takes_too_long_is_started_again(
    mcp_servers: Start, scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    servers = await mcp_servers(scripted("mute", start_timeout=0.5), MCP_RESTART_BACKOFF="30")
    assert servers.problem("demo") == "The scripted server did not start within 0.5 seconds."
    assert "The scripted server of demo did not start within 0.5 seconds; next start in 30 s" in caplog.text


async def test_a_missing_variable_keeps_only_its_server_down(mcp_servers: Start, scripted: Scripted) -> None:
    needy = scripted(name="needy", env={"TOKEN": "${NEEDY_TOKEN}", "URL": "${NEEDY_URL}"})
    servers = await mcp_servers(needy, memory("other"), NEEDY_URL="https://example.org")
    assert names(servers) == ["version"]
    assert servers.problem("demo") == "The needy server was not started because NEEDY_TOKEN is not set."


async def test_agents_are_kept_apart(settings: Callable[..., Settings], scripted: Scripted) -> None:
    servers = McpServers(settings())
    await servers.start(
        {"one": [scripted("tools=a")], "two": [scripted("tools=b"), scripted("broken", name="x")]}, deadline=60
    )
    assert [tool.name for tool in servers.tools("one")] == ["a"]
    assert [tool.name for tool in servers.tools("two")] == ["b"]
    assert servers.problem("one") is None
    assert "The x server stopped with exit code 7" in (servers.problem("two") or "")
    assert servers.tools("unknown") == []
    assert servers.problem("unknown") is None
    await servers.start({"three": [memory("late")]}, deadline=60)
    assert [tool.metadata for tool in servers.tools("three")] == [
        {"agent": "three", "server": "late", "tool": "version", "read_only": False, "destructive": True}
    ]
    await servers.start({"four": [], "five": [memory("some", tools=("nothing",))]}, deadline=60)
    assert servers.problem("four") == "Its manifest names no MCP servers."
    assert servers.problem("five") == "Its servers offer none of the tools that its manifest allows."
    with pytest.raises(ValueError, match="the servers of one have been started already"):
        await servers.start({"one": []}, deadline=1)
    await servers.aclose()


async def test_only_allowed_tools(mcp_servers: Start, scripted: Scripted, caplog: pytest.LogCaptureFixture) -> None:
    entry = scripted("tools=read,write,erase,secret", tools=("erase", "read", "wriite"), reads=("read",))
    servers = await mcp_servers(entry)
    assert names(servers) == ["read", "erase"]
    assert tool(servers, "erase").metadata == {
        "agent": "demo",
        "server": "scripted",
        "tool": "erase",
        "read_only": False,
        "destructive": True,
    }
    assert tool(servers, "read").metadata["read_only"]  # type: ignore[index]
    assert (
        "'tools' of the scripted server names wriite, which is not one of its tools; did you mean write?" in caplog.text
    )


async def test_two_servers_with_a_tool_of_one_name(mcp_servers: Start, caplog: pytest.LogCaptureFixture) -> None:
    servers = await mcp_servers(memory("plain"), memory("depot", "server"), PLACE="Bern")
    assert names(servers)[:2] == ["version", "depot_version"]
    assert await tool(servers, "version").ainvoke({}) == "plain version"
    assert await tool(servers, "depot_version").ainvoke({}) == "v1 in Bern"
    assert "version of the depot server is called depot_version here" in caplog.text


def test_a_name_that_cannot_be_had() -> None:
    assert unique_name("read", "files", []) == "read"
    assert unique_name("read", "files", ["read"]) == "files_read"
    assert unique_name("read", "files", ["read", "files_read"]) is None


async def test_closing_twice_and_at_once(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted())
    await asyncio.gather(servers.aclose(), servers.aclose())
    await servers.aclose()
    with pytest.raises(McpUnavailable, match=r"The scripted server is shut down\. echo was not run\."):
        await tool(servers, "echo").ainvoke({})


async def test_closing_without_having_started(settings: Callable[..., Settings]) -> None:
    await McpServers(settings()).aclose()


async def test_repeated_failures_are_logged_once(mcp_servers: Start, caplog: pytest.LogCaptureFixture) -> None:
    entry = McpServer(name="broken", transport="stdio", command="no-such-command")
    await mcp_servers(entry, MCP_RESTART_BACKOFF="0.05", MCP_RESTART_BACKOFF_MAX="0.05")
    caplog.set_level(logging.DEBUG, "ai_platform_engineering")
    await eventually(lambda: caplog.text.count("was not started because") > 3)
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 1


async def test_a_tool_cannot_be_called_without_an_event_loop(mcp_servers: Start) -> None:
    servers = await mcp_servers(memory("plain"))
    with pytest.raises(NotImplementedError, match="version can only be called asynchronously"):
        tool(servers, "version").invoke({})


@pytest.mark.parametrize(
    ("failures", "was_up", "expected"),
    [
        (1, True, 0.0),
        (2, True, 0.5),
        (3, True, 1.0),
        (1, False, 0.5),
        (2, False, 1.0),
        (5, False, 8.0),
        (9, False, 30.0),
        (5000, True, 30.0),
    ],
)
def test_waiting_before_a_restart(failures: int, was_up: bool, expected: float) -> None:
    assert restart_delay(failures, was_up, load_settings({}, env_file=None)) == expected


@pytest.mark.parametrize(
    ("said", "hints", "expected"),
    [
        (None, None, "destructive"),
        (None, {}, "destructive"),
        (None, {"readOnlyHint": False}, "destructive"),
        (None, {"destructiveHint": True}, "destructive"),
        (None, {"destructiveHint": False}, "write"),
        (None, {"readOnlyHint": True}, "read"),
        (None, {"readOnlyHint": True, "destructiveHint": True}, "read"),
        ("reads", {"destructiveHint": True}, "read"),
        ("writes", {"readOnlyHint": True}, "write"),
        ("writes", {"destructiveHint": True}, "write"),
        ("destructive", {"readOnlyHint": True}, "destructive"),
    ],
)
def test_what_a_tool_does(said: str | None, hints: dict[str, bool] | None, expected: str) -> None:
    annotations = ToolAnnotations.model_validate(hints) if hints is not None else None
    act = Tool(name="act", inputSchema={}, annotations=annotations)
    about_others = {"reads": ("look",), "writes": ("note",), "destructive": ("drop",)}
    entry = about_others | ({said: ("act",)} if said else {})
    assert tool_effect(McpServer(name="demo", transport="memory", module="a:b", **entry), act) == expected
