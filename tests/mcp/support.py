"""Processes and waiting, for the tests of the MCP layer."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool

from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp import McpServers

Start = Callable[..., Awaitable[McpServers]]


def tool(servers: McpServers, name: str) -> BaseTool:
    return next(tool for tool in servers.tools("demo") if tool.name == name)


def names(servers: McpServers) -> list[str]:
    return [tool.name for tool in servers.tools("demo")]


class HttpServer:
    """The public Node server over HTTP; may be killed and started again."""

    def __init__(self, script: Path, port: int, output: Path) -> None:
        self._script = script
        self._output = output
        self.port = port
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def entry(self) -> McpServer:
        return McpServer(name="everything", transport="http", url=f"http://127.0.0.1:{self.port}/mcp")

    @property
    def posts(self) -> int:
        """Requests and notifications that the process has received since its start."""
        return self._output.read_text().count("Received MCP POST request")

    async def start(self) -> None:
        self._spawn()
        await eventually(lambda: answers(self.port))

    def _spawn(self) -> None:
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                ["node", str(self._script), "streamableHttp"],
                env={**os.environ, "PORT": str(self.port)},
                stdout=output,
                stderr=subprocess.DEVNULL,
            )

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


async def eventually(condition: Callable[[], Any], seconds: float = 60) -> None:
    """Waits until the condition holds, and fails the test if it does not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this did not happen in time"
        await asyncio.sleep(0.02)


def descendants(pid: int | None = None) -> dict[int, str]:
    """The living processes below `pid` (this one, if not given), with their command lines."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError, ValueError):
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found: dict[int, str] = {}
    wanted = {os.getpid() if pid is None else pid}
    while wanted:
        wanted = {child for child, parent in parents.items() if parent in wanted}
        for child in wanted:
            with suppress(OSError):
                found[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def running(part: str) -> list[int]:
    """The processes below this one whose command line has `part` in it, children before their children."""
    return [pid for pid, command in descendants().items() if part in command]


def alive(pid: int) -> bool:
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def gone(pids: Iterable[int]) -> bool:
    return not any(alive(pid) for pid in pids)
