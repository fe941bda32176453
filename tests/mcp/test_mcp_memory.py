"""Servers in this process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers, McpUnavailable
from tests.mcp import depot as depot_module
from tests.mcp import tool_depot as tool_depot_module
from tests.mcp.support import Start, eventually, tool

ROOT = Path(__file__).parents[2]
Entry = Callable[..., McpServer]


def entry_of(module: str, attribute: str = "server") -> McpServer:
    return McpServer(name="depot", transport="memory", module=f"tests.mcp.{module}:{attribute}")


@pytest.fixture(params=["tool_depot", "depot"])
def entry(request: pytest.FixtureRequest) -> Entry:
    """A server made of functions, or one of FastMCP's: both behave the same for callers."""
    return partial(entry_of, request.param)


@pytest.fixture
async def depot(entry: Entry, mcp_servers: Start) -> McpServers:
    return await mcp_servers(entry(), PLACE="Zürich")


@pytest.fixture
async def tool_depot(mcp_servers: Start) -> McpServers:
    return await mcp_servers(entry_of("tool_depot"), PLACE="Zürich")


@pytest.fixture
async def fastmcp_depot(mcp_servers: Start) -> McpServers:
    return await mcp_servers(entry_of("depot"), PLACE="Zürich")


async def test_a_function_makes_the_server_from_the_settings(depot: McpServers) -> None:
    assert depot.problem("demo") is None
    assert await tool(depot, "version").ainvoke({}) == "v1 in Zürich"


async def test_a_server_object_is_used_as_it_is(entry: Entry, mcp_servers: Start) -> None:
    servers = await mcp_servers(entry("plain"))
    assert await tool(servers, "version").ainvoke({}) == "plain version"


async def test_a_tool_is_described_as_the_server_describes_it(depot: McpServers) -> None:
    function = convert_to_openai_tool(tool(depot, "applications"))["function"]
    assert function["name"] == "applications"
    assert function["description"] == "Applications by name."
    assert function["parameters"]["properties"]["limit"]["type"] == "integer"


async def test_structured_results_are_json(depot: McpServers) -> None:
    answer = await tool(depot, "applications").ainvoke({"prefix": "app", "limit": 1})
    assert json.loads(answer) == [{"name": "app0"}]


async def test_an_empty_list_is_still_an_answer(depot: McpServers) -> None:
    assert await tool(depot, "applications").ainvoke({"limit": 0}) in {"[]", '{"result":[]}'}


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("delete", {"name": "guestbook"}, "guestbook is protected"),
        ("declared_failure", {}, "no such thing"),
        (
            "applications",
            {"limit": "many"},
            "applications was called with wrong arguments: limit: Input should be a valid integer, "
            "unable to parse string as an integer.",
        ),
        (
            "delete",
            {"names": "guestbook"},
            "delete was called with wrong arguments: name: Missing required argument; "
            "names: Unexpected keyword argument.",
        ),
    ],
)
async def test_a_tool_that_says_no(depot: McpServers, name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolException) as failure:
        await tool(depot, name).ainvoke(arguments)
    assert str(failure.value) == message


async def test_what_goes_wrong_in_a_tool_is_its_own_business(depot: McpServers) -> None:
    with pytest.raises(ToolException) as failure:
        await tool(depot, "crash").ainvoke({})
    assert str(failure.value) in {"crash failed unexpectedly.", "Error calling tool 'crash'"}
    assert "hunter2" not in str(failure.value)


async def test_what_went_wrong_in_a_tool_is_in_the_log(
    tool_depot: McpServers, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ToolException):
        await tool(tool_depot, "crash").ainvoke({})
    (record,) = caplog.records
    assert record.getMessage() == "The tool crash of depot raised an unexpected exception"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


async def test_effects_are_in_the_metadata(depot: McpServers) -> None:
    assert tool(depot, "version").metadata == {
        "agent": "demo",
        "server": "depot",
        "tool": "version",
        "read_only": True,
        "destructive": False,
    }
    assert tool(depot, "delete").metadata == {
        "agent": "demo",
        "server": "depot",
        "tool": "delete",
        "read_only": False,
        "destructive": True,
    }


async def test_arguments_may_have_any_name(depot: McpServers) -> None:
    arguments = dict(zip(["config", "run_manager", "callbacks", "runtime", "args", "kwargs"], "abcdef", strict=True))
    assert await tool(depot, "reserved").ainvoke(arguments) == "abcdef"


async def test_a_tool_sees_its_lifespan(mcp_servers: Start) -> None:
    servers = await mcp_servers(entry_of("depot"), PLACE="here")
    assert await tool(servers, "caller").ainvoke({}) == "open=True"


async def test_the_lifespan_runs_while_the_server_is_open(tool_depot: McpServers) -> None:
    assert await tool(tool_depot, "is_open").ainvoke({}) == "true"


async def test_a_question_of_a_tool_to_its_client_is_refused(fastmcp_depot: McpServers) -> None:
    with pytest.raises(ToolException):
        await tool(fastmcp_depot, "ask").ainvoke({})


async def test_a_server_may_learn_tools(fastmcp_depot: McpServers) -> None:
    changed: list[str] = []
    fastmcp_depot.on_change(changed.append)
    before = tool(fastmcp_depot, "version")
    await tool(fastmcp_depot, "learn").ainvoke({})
    await eventually(lambda: changed == ["demo"])
    assert await tool(fastmcp_depot, "learned").ainvoke({}) == "learned"
    assert tool(fastmcp_depot, "version") is before


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("tests.mcp.nowhere:server", "could not be imported (ModuleNotFoundError)"),
        ("tests.mcp.depot:missing", "could not be imported (AttributeError)"),
        (
            "tests.mcp.depot:number",
            "is a int, not a ToolServer, a FastMCP server or a function that makes one of them from the settings",
        ),
    ],
)
async def test_a_module_that_is_no_server(mcp_servers: Start, module: str, reason: str) -> None:
    servers = await mcp_servers(McpServer(name="depot", transport="memory", module=module))
    assert servers.tools("demo") == []
    assert reason in (servers.problem("demo") or "")


def test_servers_of_all_kinds_start_side_by_side() -> None:
    script = """
import asyncio
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.mcp import McpServers

MODULES = ["depot", "tool_depot", "other_depot"]
SPECS = {name: [McpServer(name=name, transport="memory", module=f"tests.mcp.{name}:plain")] for name in MODULES}

async def main():
    servers = McpServers(load_settings({}, env_file=None))
    await servers.start(SPECS, deadline=30)
    print([servers.problem(name) for name in MODULES])
    await servers.aclose()

asyncio.run(main())
"""
    # In a process of its own, where FastMCP has not been imported yet.
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[None, None, None]\n"


async def test_fastmcp_that_is_not_installed(mcp_servers: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastmcp", None)
    monkeypatch.delitem(sys.modules, "tests.mcp.depot", raising=False)
    servers = await mcp_servers(entry_of("depot"))
    assert servers.problem("demo") == (
        "The depot server was not started because 'tests.mcp.depot:server' needs FastMCP: "
        "run `make setup EXTRAS=fastmcp` in the checkout, or build the image with `--build-arg EXTRAS=fastmcp`."
    )


async def test_a_closed_server_is_not_called(depot: McpServers) -> None:
    version = tool(depot, "version")
    await depot.aclose()
    with pytest.raises(McpUnavailable, match="depot server is shut down"):
        await version.ainvoke({})


async def test_a_call_that_takes_too_long_is_given_up(entry: Entry, mcp_servers: Start) -> None:
    servers = await mcp_servers(entry("slow"), TOOL_TIMEOUT="0.1")
    with pytest.raises(McpUnavailable, match=r"did not answer within 0\.1 seconds while wait was running"):
        await tool(servers, "wait").ainvoke({})


@pytest.mark.parametrize("module", [depot_module, tool_depot_module], ids=["depot", "tool_depot"])
async def test_a_tool_that_blocks_a_thread_is_left_behind(module: Any, mcp_servers: Start) -> None:
    servers = await mcp_servers(entry_of(module.__name__.rpartition(".")[2], "slow"), TOOL_TIMEOUT="0.1")
    module.released.clear()
    try:
        with pytest.raises(McpUnavailable, match=r"did not answer within 0\.1 seconds while block was running"):
            await tool(servers, "block").ainvoke({})
    finally:
        module.released.set()


@pytest.mark.parametrize("module", [depot_module, tool_depot_module], ids=["depot", "tool_depot"])
async def test_closing_releases_callers(module: Any, mcp_servers: Start) -> None:
    servers = await mcp_servers(entry_of(module.__name__.rpartition(".")[2], "slow"))
    module.begun.clear()
    waiting = asyncio.create_task(tool(servers, "wait").ainvoke({}))
    await eventually(module.begun.is_set)
    await servers.aclose()
    with pytest.raises(McpUnavailable, match="stopped while wait was running"):
        await waiting
