"""Servers in this process."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers, McpUnavailable
from tests.mcp import company as company_module
from tests.mcp import tool_company as tool_company_module
from tests.mcp.support import Start, eventually, tool

ROOT = Path(__file__).parents[2]
Entry = Callable[..., McpServer]


def entry_of(module: str, attribute: str = "server") -> McpServer:
    return McpServer(name="company", transport="memory", module=f"tests.mcp.{module}:{attribute}")


@pytest.fixture(params=["tool_company", "company"])
def entry(request: pytest.FixtureRequest) -> Entry:
    """A server made of functions, or one of FastMCP's: to whoever uses it they are the same."""
    return partial(entry_of, request.param)


@pytest.fixture
async def company(entry: Entry, mcp_servers: Start) -> McpServers:
    return await mcp_servers(entry(), PLACE="Zürich")


@pytest.fixture
async def tool_company(mcp_servers: Start) -> McpServers:
    return await mcp_servers(entry_of("tool_company"), PLACE="Zürich")


@pytest.fixture
async def fastmcp_company(mcp_servers: Start) -> McpServers:
    return await mcp_servers(entry_of("company"), PLACE="Zürich")


async def test_a_function_makes_the_server_from_the_settings(company: McpServers) -> None:
    assert company.problem("demo") is None
    assert await tool(company, "version").ainvoke({}) == "v1 in Zürich"


async def test_a_server_object_is_used_as_it_is(entry: Entry, mcp_servers: Start) -> None:
    servers = await mcp_servers(entry("plain"))
    assert await tool(servers, "version").ainvoke({}) == "plain version"


async def test_a_tool_is_described_as_the_server_describes_it(company: McpServers) -> None:
    function = convert_to_openai_tool(tool(company, "applications"))["function"]
    assert function["name"] == "applications"
    assert function["description"] == "Applications by name."
    assert function["parameters"]["properties"]["limit"]["type"] == "integer"


async def test_structured_results_are_json(company: McpServers) -> None:
    answer = await tool(company, "applications").ainvoke({"prefix": "app", "limit": 1})
    assert json.loads(answer) == [{"name": "app0"}]


async def test_an_empty_list_is_still_an_answer(company: McpServers) -> None:
    assert await tool(company, "applications").ainvoke({"limit": 0}) in {"[]", '{"result":[]}'}


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
async def test_a_tool_that_says_no(company: McpServers, name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolException) as failure:
        await tool(company, name).ainvoke(arguments)
    assert str(failure.value) == message


async def test_what_goes_wrong_in_a_tool_is_its_own_business(company: McpServers) -> None:
    with pytest.raises(ToolException) as failure:
        await tool(company, "crash").ainvoke({})
    assert str(failure.value) in {"crash failed unexpectedly.", "Error calling tool 'crash'"}
    assert "hunter2" not in str(failure.value)


async def test_what_went_wrong_in_a_tool_is_in_the_log(
    tool_company: McpServers, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ToolException):
        await tool(tool_company, "crash").ainvoke({})
    (record,) = caplog.records
    assert record.getMessage() == "The tool crash of company raised something other than a tool error"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


async def test_effects_are_told(company: McpServers) -> None:
    assert tool(company, "version").metadata == {
        "agent": "demo",
        "server": "company",
        "tool": "version",
        "read_only": True,
        "destructive": False,
    }
    assert tool(company, "delete").metadata == {
        "agent": "demo",
        "server": "company",
        "tool": "delete",
        "read_only": False,
        "destructive": True,
    }


async def test_arguments_may_have_any_name(company: McpServers) -> None:
    arguments = dict(zip(["config", "run_manager", "callbacks", "runtime", "args", "kwargs"], "abcdef", strict=True))
    assert await tool(company, "reserved").ainvoke(arguments) == "abcdef"


async def test_a_tool_sees_who_calls_and_its_lifespan(mcp_servers: Start) -> None:
    user: ContextVar[str] = ContextVar("user")
    servers = await mcp_servers(entry_of("company"), call_meta=lambda: {"user": user.get()}, PLACE="here")

    async def call_as(name: str) -> str:
        user.set(name)
        return str(await tool(servers, "caller").ainvoke({}))

    assert await asyncio.gather(*(call_as(name) for name in ("ann", "bob"))) == [
        "user=ann open=True",
        "user=bob open=True",
    ]


async def test_the_lifespan_runs_while_the_server_is_open(tool_company: McpServers) -> None:
    assert await tool(tool_company, "is_open").ainvoke({}) == "true"


async def test_a_tool_that_asks_its_client_is_told_no(fastmcp_company: McpServers) -> None:
    with pytest.raises(ToolException):
        await tool(fastmcp_company, "ask").ainvoke({})


async def test_a_server_may_learn_tools(fastmcp_company: McpServers) -> None:
    changed: list[str] = []
    fastmcp_company.on_change(changed.append)
    kept = tool(fastmcp_company, "version")
    await tool(fastmcp_company, "learn").ainvoke({})
    await eventually(lambda: changed == ["demo"])
    assert await tool(fastmcp_company, "learned").ainvoke({}) == "learned"
    assert tool(fastmcp_company, "version") is kept


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("tests.mcp.nowhere:server", "could not be imported (ModuleNotFoundError)"),
        ("tests.mcp.company:nobody", "could not be imported (AttributeError)"),
        (
            "tests.mcp.company:number",
            "is a int, not a ToolServer, a FastMCP server or a function that makes one of them from the settings",
        ),
    ],
)
async def test_a_module_that_is_no_server(mcp_servers: Start, module: str, reason: str) -> None:
    servers = await mcp_servers(McpServer(name="company", transport="memory", module=module))
    assert servers.tools("demo") == []
    assert reason in (servers.problem("demo") or "")


def test_servers_of_all_kinds_start_side_by_side() -> None:
    script = """
import asyncio
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.mcp import McpServers

MODULES = ["company", "tool_company", "other_company"]
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
    monkeypatch.delitem(sys.modules, "tests.mcp.company", raising=False)
    servers = await mcp_servers(entry_of("company"))
    assert servers.problem("demo") == (
        "The company server was not started because 'tests.mcp.company:server' needs FastMCP: "
        "run `make setup EXTRAS=fastmcp` in the checkout, or build the image with `--build-arg EXTRAS=fastmcp`."
    )


async def test_a_closed_server_is_not_called(company: McpServers) -> None:
    version = tool(company, "version")
    await company.aclose()
    with pytest.raises(McpUnavailable, match="company server is shut down"):
        await version.ainvoke({})


async def test_a_call_that_takes_too_long_is_given_up(entry: Entry, mcp_servers: Start) -> None:
    servers = await mcp_servers(entry("slow"), TOOL_TIMEOUT="0.1")
    with pytest.raises(McpUnavailable, match=r"did not answer within 0\.1 seconds while wait was running"):
        await tool(servers, "wait").ainvoke({})


@pytest.mark.parametrize("module", [company_module, tool_company_module], ids=["company", "tool_company"])
async def test_a_tool_that_blocks_a_thread_is_left_behind(module: Any, mcp_servers: Start) -> None:
    servers = await mcp_servers(entry_of(module.__name__.rpartition(".")[2], "slow"), TOOL_TIMEOUT="0.1")
    module.released.clear()
    try:
        with pytest.raises(McpUnavailable, match=r"did not answer within 0\.1 seconds while block was running"):
            await tool(servers, "block").ainvoke({})
    finally:
        module.released.set()


@pytest.mark.parametrize("module", [company_module, tool_company_module], ids=["company", "tool_company"])
async def test_closing_releases_callers(module: Any, mcp_servers: Start) -> None:
    servers = await mcp_servers(entry_of(module.__name__.rpartition(".")[2], "slow"))
    module.begun.clear()
    waiting = asyncio.create_task(tool(servers, "wait").ainvoke({}))
    await eventually(module.begun.is_set)
    await servers.aclose()
    with pytest.raises(McpUnavailable, match="stopped while wait was running"):
        await waiting
