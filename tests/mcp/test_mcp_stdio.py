"""Servers that are processes: public ones, and one that misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.tools import ToolException

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers, McpUnavailable
from ai_platform_engineering.settings import Settings
from tests.mcp.support import Start, alive, descendants, eventually, gone, names, running, tool

Scripted = Callable[..., McpServer]


async def test_a_public_python_server_behind_a_wrapper(mcp_servers: Start, time_server: McpServer) -> None:
    """The wrapper and its server end together, whichever is killed and also when we close."""
    servers = await mcp_servers(time_server)
    assert names(servers) == ["get_current_time", "convert_time"]
    convert = tool(servers, "convert_time")
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    assert "21:00" in await convert.ainvoke(arguments)
    with pytest.raises(ToolException, match=r"(?i)timezone"):
        await tool(servers, "get_current_time").ainvoke({"timezone": "Nowhere/Land"})

    wrapper, server = running("mcp-server-time")
    os.kill(wrapper, signal.SIGKILL)
    await eventually(lambda: gone([wrapper, server]))
    await eventually(lambda: servers.problem("demo") is None, 30)
    assert "21:00" in await convert.ainvoke(arguments)

    wrapper, server = running("mcp-server-time")
    await servers.aclose()
    await eventually(lambda: gone([wrapper, server]))


async def test_a_public_node_server(mcp_servers: Start, everything: McpServer) -> None:
    servers = await mcp_servers(everything)
    assert await tool(servers, "echo").ainvoke({"message": "hello"}) == "Echo: hello"
    assert "[image: image/png, " in await tool(servers, "get-tiny-image").ainvoke({})
    assert json.loads(await tool(servers, "get-structured-content").ainvoke({"location": "New York"}))["conditions"]
    with pytest.raises(ToolException):
        await tool(servers, "get-sum").ainvoke({"a": "one"})


async def test_a_server_sees_only_the_environment_it_was_given(mcp_servers: Start, everything: McpServer) -> None:
    entry = everything.model_copy(update={"env": {"GIVEN": "${SOURCE}"}})
    servers = await mcp_servers(entry, SOURCE="a value", OPENAI_API_KEY="sk-not-for-you")
    environment = json.loads(await tool(servers, "get-env").ainvoke({}))
    assert environment["GIVEN"] == "a value"
    assert environment["PATH"].startswith(os.environ["PATH"])
    assert not {"SOURCE", "OPENAI_API_KEY", "PYTEST_CURRENT_TEST"} & environment.keys()


async def test_killed_in_mid_call(
    mcp_servers: Start, everything: McpServer, everything_script: Path, call_sent: asyncio.Event
) -> None:
    servers = await mcp_servers(everything)
    echo, slow = tool(servers, "echo"), tool(servers, "trigger-long-running-operation")
    call = asyncio.create_task(slow.ainvoke({"duration": 60, "steps": 2}))
    await asyncio.wait_for(call_sent.wait(), 90)
    [pid] = running(str(everything_script))
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(McpUnavailable) as failure:
        await asyncio.wait_for(call, 90)
    assert str(failure.value) == (
        "The everything server stopped while trigger-long-running-operation was running. "
        "Whether it took effect is unknown; check before trying again."
    )
    assert await asyncio.wait_for(echo.ainvoke({"message": "again"}), 90) == "Echo: again"
    assert servers.problem("demo") is None
    assert not alive(pid)


async def test_a_server_killed_between_calls_is_restarted_unnoticed(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted("tools=pid"))
    pid = tool(servers, "pid")
    first = int(await pid.ainvoke({}))
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: not alive(first))
    began = time.monotonic()
    assert int(await pid.ainvoke({})) != first
    assert time.monotonic() - began < 20


async def test_many_callers_and_two_kills(mcp_servers: Start, scripted: Scripted) -> None:
    """Every call ends with an answer or one clear error, and the calls after the last kill all work."""
    servers = await mcp_servers(scripted("tools=pid"), MCP_RESTART_BACKOFF="0.1")
    pid = tool(servers, "pid")
    over = asyncio.Event()
    answers: dict[int, str] = {}
    """The last answer of each caller."""
    errors: list[str] = []

    async def caller(number: int) -> None:
        while not over.is_set():
            try:
                answers[number] = await pid.ainvoke({})
            except McpUnavailable as error:
                errors.append(str(error))
            await asyncio.sleep(0.01)

    async def killer() -> None:
        killed: set[str] = set()
        for kills_left in (2, 1, 0):
            # A call that both kills prevent from being sent would not be run at all.
            await eventually(lambda: len(answers) == 50 and killed.isdisjoint(answers.values()))
            if kills_left:
                killed.add(answers[0])
                os.kill(int(answers[0]), signal.SIGKILL)
        over.set()

    async with asyncio.timeout(150):
        await asyncio.gather(killer(), *(caller(number) for number in range(50)))
        last = await asyncio.gather(*(pid.ainvoke({}) for _ in range(50)))
    assert set(last) == {answers[0]}
    assert all("The scripted server stopped while pid was running." in error for error in errors)
    assert len(errors) <= 100


async def test_a_call_is_not_sent_twice(mcp_servers: Start, scripted: Scripted, tmp_path: Path) -> None:
    """A server that dies of a call is not given that call again."""
    calls = tmp_path / "calls"
    servers = await mcp_servers(scripted("tools=exit,echo", f"calls-file={calls}"))
    with pytest.raises(McpUnavailable, match="stopped while exit was running"):
        await tool(servers, "exit").ainvoke({})
    assert await tool(servers, "echo").ainvoke({"a": 1}) == '{"a": 1}'
    assert calls.read_text().split() == ["exit", "echo"]


async def test_a_server_that_keeps_dying_is_given_up_on_quickly(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted("tools=exit", "stderr=out of memory"), MCP_RESTART_BACKOFF="20")
    call = tool(servers, "exit")
    for _ in range(2):
        with pytest.raises(McpUnavailable, match="while exit was running"):
            await call.ainvoke({})
    await eventually(lambda: servers.problem("demo") is not None)
    began = time.monotonic()
    with pytest.raises(
        McpUnavailable,
        match=r'exit code 3; .* was "out of memory"\. exit was not run; the next start is in (20|1\d) seconds\.',
    ):
        await call.ainvoke({})
    assert time.monotonic() - began < 15


async def test_a_call_without_a_caller_is_cancelled(mcp_servers: Start, scripted: Scripted, tmp_path: Path) -> None:
    """The server learns of it; the session goes on."""
    called, noted = tmp_path / "called", tmp_path / "cancelled"
    servers = await mcp_servers(scripted("tools=sleep,pid", f"calls-file={called}", f"cancelled-file={noted}"))
    call = asyncio.create_task(tool(servers, "sleep").ainvoke({"seconds": 2}))
    await eventually(called.exists)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await eventually(noted.exists)
    assert int(await tool(servers, "pid").ainvoke({})) in descendants()


async def test_a_call_that_takes_too_long(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted("tools=sleep"), TOOL_TIMEOUT="0.2")
    with pytest.raises(McpUnavailable, match=r"did not answer within 0\.2 seconds while sleep was running"):
        await tool(servers, "sleep").ainvoke({"seconds": 1})


async def test_closing_leaves_no_process(mcp_servers: Start, scripted: Scripted, everything: McpServer) -> None:
    before = set(descendants())
    servers = await mcp_servers(
        everything,
        scripted("child", name="parent"),
        scripted("stubborn", "child", name="stubborn"),
    )
    started = set(descendants()) - before
    assert len(started) == 5, "node, and two processes for each of the others"
    began = time.monotonic()
    await servers.aclose()
    await servers.aclose()
    # A killed process ends a moment after the signal.
    await eventually(lambda: gone(started))
    assert time.monotonic() - began < 20


async def test_a_server_is_asked_before_it_is_killed(mcp_servers: Start, scripted: Scripted, tmp_path: Path) -> None:
    farewell = tmp_path / "farewell"
    servers = await mcp_servers(scripted(f"farewell-file={farewell}"))
    await servers.aclose()
    assert farewell.read_text() == "goodbye"


async def test_closing_while_starting_leaves_no_process(mcp_servers: Start, scripted: Scripted) -> None:
    before = set(descendants())
    servers = await mcp_servers(scripted("mute", "child"), deadline=0.3)
    await eventually(lambda: len(set(descendants()) - before) == 2)
    started = set(descendants()) - before
    await asyncio.wait_for(servers.aclose(), 90)
    # A killed process ends a moment after the signal.
    await eventually(lambda: gone(started))


async def test_closing_at_once(settings: Callable[..., Settings], scripted: Scripted) -> None:
    before = set(descendants())
    servers = McpServers(settings())
    starting = asyncio.create_task(servers.start({"demo": [scripted("child")]}, deadline=60))
    await asyncio.sleep(0)
    await servers.aclose()
    await asyncio.wait_for(starting, 90)
    assert set(descendants()) <= before


async def test_a_cancelled_owner_still_kills(settings: Callable[..., Settings], scripted: Scripted) -> None:
    """As when the event loop is torn down without a word."""
    servers = McpServers(settings())
    before = set(descendants())
    await servers.start({"demo": [scripted("child", "stubborn")]}, deadline=60)
    started = set(descendants()) - before
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for _ in range(2):
        for task in others:
            task.cancel()
        await asyncio.sleep(0.1)
    await eventually(lambda: gone(started))


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            {"command": "no-such-command"},
            "The broken server was not started because the command 'no-such-command' was not found; "
            "install it, or put its full path into the manifest.",
        ),
        (
            {"command": "/dev/null"},
            "The broken server was not started because the command '/dev/null' may not be executed; "
            "check its permissions.",
        ),
        (
            {"command": sys.executable, "args": ("-c", "raise SystemExit(7)")},
            "The broken server stopped with exit code 7 while it was starting.",
        ),
        (
            {"command": sys.executable, "args": ("-c", "raise SystemExit('no token ${A_TOKEN}')")},
            "The broken server stopped with exit code 1 while it was starting; "
            'its last line on standard error was "no token ***".',
        ),
        (
            {"command": "cat", "env": {"TOKEN": "${NOT_SET_ANYWHERE}"}},
            "The broken server was not started because NOT_SET_ANYWHERE is not set.",
        ),
    ],
)
async def test_a_server_that_cannot_start(
    mcp_servers: Start, caplog: pytest.LogCaptureFixture, entry: dict[str, object], problem: str
) -> None:
    servers = await mcp_servers(McpServer(name="broken", transport="stdio", **entry), A_TOKEN="hunter2-hunter2")
    assert servers.tools("demo") == []
    assert not servers.starting("demo")
    assert servers.problem("demo") == problem
    [warning] = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "broken" in warning.getMessage()


async def test_a_server_that_recovers(mcp_servers: Start, tmp_path: Path) -> None:
    """A command that is installed later is found without a restart of ours."""
    command = tmp_path / "late-server"
    entry = McpServer(
        name="late", transport="stdio", command=str(command), args=(str(Path(__file__).parent / "scripted_server.py"),)
    )
    servers = await mcp_servers(entry, MCP_RESTART_BACKOFF="0.1")
    changed: list[str] = []
    servers.on_change(changed.append)
    assert "was not found" in (servers.problem("demo") or "")
    command.symlink_to(sys.executable)
    await eventually(lambda: changed == ["demo"])
    assert names(servers) == ["echo"]
    assert servers.problem("demo") is None


async def test_what_a_server_writes_is_logged_without_secrets(
    mcp_servers: Start, scripted: Scripted, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "ai_platform_engineering")
    entry = scripted("stderr=login with hunter2-hunter2", "noisy", env={"API_PASSWORD": "${SECRET}"})
    servers = await mcp_servers(entry, SECRET="hunter2-hunter2")
    assert names(servers) == ["echo"], "a line that is not a message does no harm"
    await eventually(lambda: "scripted: login with ***" in caplog.text)
    assert "hunter2" not in caplog.text


async def test_arguments_arrive_as_they_were_given(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted())
    arguments = {"self": 1, "config": {"deep": [None, "é"]}, "none": None, "name": "x", "meta": {}}
    assert json.loads(await tool(servers, "echo").ainvoke(arguments)) == arguments


async def test_large_results(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted("tools=large"))
    assert len(await tool(servers, "large").ainvoke({"size": 3_000_000})) == 3_000_000


async def test_all_pages_of_tools(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted("tools=a,b,c,d,e", "page-size=2"))
    assert names(servers) == ["a", "b", "c", "d", "e"]


async def test_tools_that_change_under_way(mcp_servers: Start, scripted: Scripted, tmp_path: Path) -> None:
    listed = tmp_path / "tools"
    listed.write_text("announce echo pid")
    servers = await mcp_servers(scripted(f"tools-file={listed}"))
    changed: list[str] = []
    servers.on_change(changed.append)
    echo = tool(servers, "echo")

    listed.write_text("announce echo more pid")
    await tool(servers, "announce").ainvoke({})
    await eventually(lambda: changed == ["demo"])
    assert names(servers) == ["announce", "echo", "more", "pid"]

    listed.write_text("echo other")
    os.kill(int(await tool(servers, "pid").ainvoke({})), signal.SIGKILL)
    await eventually(lambda: changed == ["demo", "demo"])
    assert names(servers) == ["echo", "other"]
    assert tool(servers, "echo") is echo


async def test_a_restart_with_the_same_tools_changes_nothing(mcp_servers: Start, scripted: Scripted) -> None:
    servers = await mcp_servers(scripted("tools=pid"))
    changed: list[str] = []
    servers.on_change(changed.append)
    first = int(await tool(servers, "pid").ainvoke({}))
    os.kill(first, signal.SIGKILL)
    await eventually(lambda: not alive(first))
    assert int(await tool(servers, "pid").ainvoke({})) != first
    assert changed == []
