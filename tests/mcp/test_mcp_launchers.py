"""Servers that `npx` and `uvx` download: from the cache where they are in it, and in their own time where not."""

from __future__ import annotations

import logging
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import sessions
from ai_platform_engineering.mcp.launchers import launches
from ai_platform_engineering.mcp.process_output import StderrTail
from ai_platform_engineering.utils.redact import Redactor
from tests.mcp.conftest import EVERYTHING_SERVER, SCRIPTED_SERVER, TIME_SERVER, not_here
from tests.mcp.support import Start, eventually, names
from tests.services.environment import download_lock

pytestmark = pytest.mark.process

DOWNLOADS = {"MCP_ALLOW_DOWNLOADS": "true"}
LAUNCHER = """#!{python}
import pathlib, sys, time
folder = pathlib.Path({folder!r})
with (folder / "launches").open("a") as launches:
    launches.write(" ".join(sys.argv[1:]) + chr(10))
if "--offline" in sys.argv:
    sys.exit("not in the cache")
print("fetched 1 of 3 with hunter2-hunter2", file=sys.stderr, flush=True)
if "broken" in sys.argv:
    sys.exit(1)
while not (folder / "downloaded").exists():
    time.sleep(0.02)
import runpy
sys.argv = [{server!r}]
runpy.run_path({server!r}, run_name="__main__")
"""


@pytest.fixture
def slow_npx(tmp_path: Path) -> Callable[..., McpServer]:
    """A server behind an `npx` that downloads until the file `downloaded` is there."""
    launcher = tmp_path / "npx"
    # The server may read the files in the directory that its variables name, wherever this checkout is.
    server = shutil.copy(SCRIPTED_SERVER, tmp_path)
    text = LAUNCHER.format(python=sys.executable, folder=str(tmp_path), server=str(server))
    launcher.write_text(text)
    launcher.chmod(0o700)

    def make(*args: str) -> McpServer:
        env = {"API_TOKEN": "hunter2-hunter2", "FOLDER": str(tmp_path)}
        return McpServer(name="slow", transport="stdio", command=str(launcher), args=("pkg@1.0", *args), env=env)

    return make


@pytest.mark.parametrize(
    ("command", "args", "tool"),
    [
        ("uvx", (TIME_SERVER.replace("==", "@"), "--local-timezone=UTC"), "get_current_time"),
        ("npx", ("-y", EVERYTHING_SERVER, "stdio"), "echo"),
    ],
)
async def test_a_server_in_the_cache_needs_no_registry(
    mcp_servers: Start, command: str, args: tuple[str, ...], tool: str, unused_port: int
) -> None:
    if shutil.which(command) is None and command == "npx":
        not_here("npx is not installed")
    entry = McpServer(name="cached", transport="stdio", command=command, args=args)
    proxy = f"http://127.0.0.1:{unused_port}"
    unreachable = {"HTTPS_PROXY": proxy, "HTTP_PROXY": proxy, "https_proxy": proxy, "http_proxy": proxy}
    with download_lock(command):
        cached = await mcp_servers(entry, deadline=30, **unreachable)
        if not cached.tools("demo"):
            await cached.aclose()
            first = await mcp_servers(entry, deadline=120, **DOWNLOADS)
            if not first.tools("demo"):
                not_here(f"{args} cannot be downloaded: {first.problem('demo')}")
            await first.aclose()
            cached = await mcp_servers(entry, deadline=30, **unreachable)
    assert cached.problem("demo") is None
    assert tool in names(cached)


async def test_a_download_gets_its_time_and_is_reported(
    mcp_servers: Start,
    slow_npx: Callable[..., McpServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(sessions, "START_TIMEOUT", 0.5)
    monkeypatch.setattr(sessions, "PROGRESS_INTERVAL", 0.3)
    caplog.set_level(logging.INFO, "ai_platform_engineering")
    servers = await mcp_servers(slow_npx(), deadline=0.5, MCP_START_TIMEOUT="0.5", **DOWNLOADS)
    await eventually(lambda: servers.problem("demo") == "The slow server is still downloading its tools.")
    assert servers.starting("demo")
    await eventually(lambda: caplog.text.count("is still downloading its tools (") >= 4)
    assert 'its last line on standard error was "fetched 1 of 3 with ***"' in caplog.text
    # On a busy machine, the attempt from the cache may be over before the launcher has written its line.
    launches = [line for line in (tmp_path / "launches").read_text().splitlines() if "--offline" not in line]
    assert launches == ["pkg@1.0"], "it was not killed"

    (tmp_path / "downloaded").touch()
    await eventually(lambda: servers.problem("demo") is None)
    assert names(servers) == ["echo"]
    assert not servers.starting("demo")


async def test_a_download_that_never_ends(mcp_servers: Start, slow_npx: Callable[..., McpServer]) -> None:
    entry = slow_npx().model_copy(update={"start_timeout": 5.0})
    servers = await mcp_servers(entry, MCP_DOWNLOAD_TIMEOUT="6", MCP_RESTART_BACKOFF="30", **DOWNLOADS)
    assert servers.problem("demo") == (
        'The slow server did not start within 6 seconds; its last line on standard error was "fetched 1 of 3 with ***".'
    )
    assert not servers.starting("demo")


async def test_a_launcher_that_fails_says_why(mcp_servers: Start, slow_npx: Callable[..., McpServer]) -> None:
    servers = await mcp_servers(slow_npx("broken"), MCP_RESTART_BACKOFF="30", **DOWNLOADS)
    assert servers.problem("demo") == (
        "The slow server stopped with exit code 1 while it was starting; "
        'its last line on standard error was "fetched 1 of 3 with ***".'
    )


async def test_without_permission_nothing_is_downloaded(
    mcp_servers: Start, slow_npx: Callable[..., McpServer], tmp_path: Path
) -> None:
    servers = await mcp_servers(slow_npx(), MCP_RESTART_BACKOFF="30")
    assert servers.problem("demo") == (
        "The slow server stopped with exit code 1 while it was starting; its last line on standard error was "
        '"not in the cache"; with MCP_ALLOW_DOWNLOADS=true, npx may download what is not in its cache.'
    )
    assert (tmp_path / "launches").read_text().splitlines() == ["--offline pkg@1.0"]


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        ("npx", ["-y", "a@1"], [(("--offline", "-y", "a@1"), False), (("-y", "a@1"), True)]),
        (
            "/opt/bin/uv",
            ["tool", "run", "a"],
            [(("--offline", "tool", "run", "a"), False), (("tool", "run", "a"), True)],
        ),
        ("uvx", ["a@latest"], [(("a@latest",), True), (("--offline", "a@latest"), False)]),
        ("uvx", ["--offline", "a"], [(("--offline", "a"), False)]),
        ("node", ["npx"], [(("npx",), False)]),
    ],
)
def test_the_cache_comes_first_unless_the_newest_is_asked_for(
    command: str, args: list[str], expected: list[tuple[tuple[str, ...], bool]]
) -> None:
    assert [(launch.args, launch.downloads) for launch in launches(command, args, downloads=True)] == expected


@pytest.mark.parametrize(
    ("written", "line"),
    [
        ("", ""),
        ("one\n\x1b[31mtwo\x1b[0m  ", "two"),
        (
            "Error: Cannot find module 'x'\n    at Module._load (a.js:1:2)\n}\n\nNode.js v20.11.1",
            "Error: Cannot find module 'x'",
        ),
        ("npm error code E404\nnpm error A complete log of this run can be found in: /x.log", "npm error code E404"),
        ("}", "}"),
        ("token=hunter2-hunter2", "token=***"),
    ],
)
def test_the_last_line_that_says_something(written: str, line: str) -> None:
    tail = StderrTail(Redactor())
    for part in written.splitlines():
        tail.add(part.encode())
    assert tail.last_line == line
