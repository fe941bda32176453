"""Agents that are only a manifest in the user's folder, over public MCP servers, asked through the supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from langchain_core.language_models import BaseChatModel

from ai_platform_engineering.events import FinalResult, ToolFinished, ToolStarted
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import AgentManifest, McpServer
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlatformEngineerDeepAgent
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.wire import Decoder
from tests.invariants import check
from tests.mcp.support import HttpServer, running
from tests.servers import calling, serving

LONG = "trigger-long-running-operation"


def environ_with(folder: Path, name: str, server: McpServer, **manifest: Any) -> dict[str, str]:
    """A folder with one manifest in it, and nothing else to do for the supervisor."""
    agents = folder / "agents"
    agents.mkdir()
    entry = server.model_dump(mode="json", exclude_defaults=True)
    described = {"name": name, "prompt": f"You are {name}.", "servers": [entry], **manifest}
    (agents / f"{name}.yaml").write_text(yaml.safe_dump(described))
    return {**os.environ, "AGENTS_DIR": str(agents), "DATA_DIR": str(folder), "OFFLINE_MODEL_DELAY": "0"}


async def test_a_stdio_server_serves_an_agent_without_a_line_of_code(tmp_path: Path, time_server: McpServer) -> None:
    environ = environ_with(
        tmp_path,
        "clock",
        time_server,
        description="The time of day in any time zone, conversion between time zones.",
        keywords=["clock", "time", "timezone"],
    )
    async with serving(create_app, environ) as url, calling(url) as caller:
        tools = (await caller.http.get(f"{url}/tools")).json()["tools"]
        events = await caller.ask('use the clock: get current time in timezone "Europe/Berlin"')
    assert {row["name"] for row in tools if row["agent"] == "clock"} == {"get_current_time", "convert_time"}
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert "Europe/Berlin" in ending.text
    used = next(event for event in events if isinstance(event, ToolFinished))
    assert (used.agent, used.tool, used.ok) == ("clock", "get_current_time", True)


async def test_an_http_server_serves_an_agent_without_a_line_of_code(tmp_path: Path, http_server: HttpServer) -> None:
    environ = environ_with(
        tmp_path, "parrot", http_server.entry, description="Echoes messages back.", keywords=["parrot", "echo"]
    )
    async with serving(create_app, environ) as url, calling(url) as caller:
        events = await caller.ask('ask the parrot to echo the message "polly wants a cluster"')
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert "polly wants a cluster" in ending.text
    used = next(event for event in events if isinstance(event, ToolFinished))
    assert (used.agent, used.tool, used.ok) == ("parrot", "echo", True)


def scripted_models(calls: Mapping[str, tuple[str, dict[str, Any]]]) -> Any:
    """The supervisor delegates every question; the agent makes the call that belongs to the question."""

    def supervisor(cue: ModelInput) -> Turn:
        if cue.turn == 0:
            return Turn("I ask the agent.", [("task", {"description": cue.question, "subagent_type": "everything"})])
        return Turn("That is what it said.")

    def agent(cue: ModelInput) -> Turn:
        return Turn("", [calls[cue.question]]) if cue.turn == 0 else Turn(str(cue.messages[-1].text))

    def models(_: Settings, manifest: AgentManifest | None) -> BaseChatModel:
        return ScriptedChatModel(script=supervisor if manifest is None else agent)

    return models


async def test_a_server_killed_in_mid_conversation_is_one_clear_error_and_the_next_call_works(
    tmp_path: Path, everything: McpServer, everything_script: Path, call_sent: asyncio.Event
) -> None:
    environ = environ_with(tmp_path, "everything", everything, description="Everything.", keywords=["everything"])
    models = scripted_models({"long": (LONG, {"duration": 30, "steps": 1}), "echo": ("echo", {"message": "hello"})})

    def app(settings: Settings) -> Any:
        return create_app(settings, PlatformEngineerDeepAgent(settings, models=models))

    async with serving(app, environ) as url, calling(url) as caller:
        decoder = Decoder("supervisor")
        broken: list[Any] = []
        async for update in caller.updates("long", context_id="one"):
            events = decoder.feed(update)
            broken += events
            if any(isinstance(event, ToolStarted) for event in events):
                await asyncio.wait_for(call_sent.wait(), 90)
                for pid in running(str(everything_script)):
                    os.kill(pid, signal.SIGKILL)
        after = await caller.ask("echo", context_id="one")
    assert isinstance(check(broken), FinalResult)
    failed = [event for event in broken if isinstance(event, ToolFinished)]
    assert [(event.tool, event.ok) for event in failed] == [(LONG, False)]
    assert "everything" in (failed[0].reason or "")
    assert "stopped while" in (failed[0].reason or "")
    check(after)
    assert [(event.tool, event.ok) for event in after if isinstance(event, ToolFinished)] == [("echo", True)]
    assert not running(str(everything_script)), "a server process was left behind"


async def test_a_server_that_does_not_start_leaves_an_agent_that_says_so(tmp_path: Path) -> None:
    server = McpServer(name="gone", transport="stdio", command="no-such-command-anywhere")
    environ = environ_with(tmp_path, "ghost", server, description="Talks to ghosts.", keywords=["ghost", "ghosts"])
    async with serving(create_app, environ) as url, calling(url) as caller:
        events = await caller.ask("ask the ghost agent who is there")
    ending = check(events)
    assert isinstance(ending, FinalResult)
    assert "no tools" in ending.text.lower()
    assert not [event for event in events if isinstance(event, ToolStarted)]
