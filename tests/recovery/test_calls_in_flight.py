"""SIGKILL while a tool works: a call that reads is made again, one that changes something is looked up first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp.types import ToolAnnotations

from ai_platform_engineering.events import FinalResult, ToolFinished
from ai_platform_engineering.llm.scripted import Turn
from ai_platform_engineering.mcp.protocol import http_app
from ai_platform_engineering.mcp.tool_server import ToolServer
from tests.audited import audited
from tests.invariants import check_task
from tests.recovery.client import Frame, TaskClient
from tests.recovery.model_server import Json, model_server
from tests.recovery.processes import Restartable
from tests.recovery.scenario import is_unknown, results_of
from tests.servers import serving

MANIFEST = """
name: depot
description: Deploys.
prompt: You deploy.
servers:
  - {name: depot, transport: http, url: "${DEPOT_URL}", reads: [deployments], writes: [deploy]}
"""
READ = ToolAnnotations(readOnlyHint=True)
WRITE = ToolAnnotations(readOnlyHint=False, destructiveHint=False)


@dataclass
class Depot:
    """A backend in the process of the test. Its next call of `held` does not return; it may do its work before that."""

    held: str = ""
    works_first: bool = False
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    calls: list[str] = field(default_factory=list)
    deployed: list[str] = field(default_factory=list)

    def tools(self) -> ToolServer:
        server = ToolServer("depot")
        server.tool(self.deployments, annotations=READ)
        server.tool(self.deploy, annotations=WRITE)
        return server

    async def deployments(self) -> dict[str, Any]:
        """List what is deployed."""
        await self._hold("deployments")
        return {"deployed": self.deployed}

    async def deploy(self, name: str) -> dict[str, Any]:
        """Deploy something."""
        if self.works_first or self.held != "deploy":
            self.deployed.append(name)
        await self._hold("deploy")
        return {"message": f"Deployed {name}."}

    async def _hold(self, tool: str) -> None:
        self.calls.append(tool)
        if self.held == tool:
            self.held = ""
            self.reached.set()
            await self.released.wait()


def play(request: Json) -> Turn:
    """Looks, deploys, and looks again after an unknown outcome."""
    results = results_of(request["messages"])
    tools = {tool["function"]["name"] for tool in request.get("tools") or ()}
    if "task" in tools:
        return Turn("Done.") if results else Turn("", [("task", {"description": "shop", "subagent_type": "depot"})])
    match results[-1:]:
        case []:
            return Turn("", [("deployments", {})])
        case [("deployments", text)] if "shop" in text:
            return Turn("It is deployed.")
        case [("deployments", _)]:
            return Turn("", [("deploy", {"name": "shop"})])
        case [("deploy", text)] if is_unknown(text):
            return Turn("", [("deployments", {})])
        case _:
            return Turn("It is deployed.")


@asynccontextmanager
async def with_depot(folder: Path, depot: Depot) -> AsyncIterator[dict[str, str]]:
    (folder / "agents").mkdir()
    (folder / "agents" / "depot.yaml").write_text(MANIFEST, encoding="utf-8")
    async with serving(lambda _: http_app(depot.tools(), "/mcp"), {}) as url:
        try:
            yield {
                "DATA_DIR": str(folder),
                "AGENTS_DIR": str(folder / "agents"),
                "DEPOT_URL": f"{url}/mcp",
                "REQUIRE_APPROVAL": "never",
                "UNTRUSTED_CONTENT": "trust",
                "ENABLE_RAG": "false",
                "LOG_LEVEL": "warning",
            }
        finally:
            depot.released.set()


@pytest.mark.long
@pytest.mark.parametrize(
    ("held", "works_first", "calls", "unknown", "recorded"),
    [
        pytest.param("deployments", False, ["deployments", "deployments", "deploy"], [], ["", "ok"], id="read"),
        pytest.param("deploy", True, ["deployments", "deploy", "deployments"], ["deploy"], ["", "unknown"], id="done"),
        pytest.param(
            "deploy",
            False,
            ["deployments", "deploy", "deployments", "deploy"],
            ["deploy"],
            ["", "unknown", "", "ok"],
            id="not done",
        ),
    ],
)
async def test_a_change_in_flight_is_looked_up_and_a_read_is_repeated(
    tmp_path: Path,
    unused_port: int,
    held: str,
    works_first: bool,
    calls: list[str],
    unknown: list[str],
    recorded: list[str],
) -> None:
    depot = Depot(held, works_first)
    async with (
        model_server(play) as model,
        httpx.AsyncClient(timeout=60) as http,
        with_depot(tmp_path, depot) as environ,
        Restartable(["serve"], unused_port, environ | model.environ()) as supervisor,
    ):

        async def kill(frame: Frame) -> bool:
            if (frame.kind, frame.tool) != ("tool_started", held) or depot.released.is_set():
                return False
            await depot.reached.wait()
            await supervisor.kill()
            depot.released.set()
            await supervisor.start()
            return True

        task = await TaskClient(http, supervisor.url).ask("Deploy the shop.", kill)
    assert isinstance(check_task(task.events), FinalResult)
    assert depot.calls == calls
    assert depot.deployed == ["shop"]
    ends = [event for event in task.events if isinstance(event, ToolFinished)]
    assert [end.tool for end in ends if not end.ok] == unknown
    assert all(is_unknown(end.reason or "") for end in ends if not end.ok)
    assert not model.refusals
    entries = audited(tmp_path, "tool_call_started", "tool_call_finished")
    assert [entry.get("outcome", "") for entry in entries] == recorded
