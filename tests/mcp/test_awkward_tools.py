"""Tools that a provider would refuse, of a real server, used through the supervisor with a strict OpenAI API."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from ai_platform_engineering.cli.doctor import diagnose
from ai_platform_engineering.events import AgentFinished, AgentStarted, FinalResult, ToolFinished, ToolStarted
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.multi_agents.agent_app import create_agent_app
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from ai_platform_engineering.settings import load_settings
from tests.invariants import check
from tests.llm.openai_rules import refusal
from tests.llm.openai_server import OpenAIServer, openai_server
from tests.mcp.support import Start
from tests.servers import Caller, calling, serving

SERVER = Path(__file__).parent / "awkward_server.py"
LONG = "describe_every_single_resource_of_the_cluster_in_all_of_its_namespaces"
ENTRY = McpServer(name="awkward", transport="stdio", command=sys.executable, args=(str(SERVER),))
CALLS: dict[str, Mapping[str, Any]] = {
    "apps.list": {},
    "apps list": {"name": "shop"},
    LONG: {},
    "task": {"description": "tidy up", "subagent_type": "unknown"},
    "write_todos": {"steps": ["one"]},
    "awkward_request_user_input": {},
    "by_name_or_id": {"id": 7},
    "nested": {"tree": {"name": "root", "children": [{"name": "leaf"}]}},
}


def model_part(body: dict[str, Any]) -> Sequence[dict[str, Any]]:
    """The supervisor delegates; the agent calls the tool that the question names, by the model's name for it."""
    messages = body["messages"]
    question = next(message["content"] for message in reversed(messages) if message["role"] == "user")
    if messages[-1]["role"] == "tool":
        return [{"content": f"It said: {messages[-1]['content']}"}]
    offered = {tool["function"]["name"] for tool in body["tools"]}
    if "start_workflow" in offered:
        return [_call("task", {"description": question, "subagent_type": "awkward"})]
    name, arguments = json.loads(question)
    return [_call(_offered_as(name, offered), arguments)]


def _offered_as(name: str, offered: set[str]) -> str:
    """The one of the offered names that a person would take for the tool's."""
    safe = name.replace(".", "_").replace(" ", "_")
    fitting = [one for one in offered if one in (safe, f"awkward_{name}")] or [
        one for one in offered if one.startswith(safe[:50])
    ]
    # Two tools that are alike but for a dot and a space; the second has something behind its name.
    return sorted(fitting)[0] if name != "apps list" else max(one for one in offered if one.startswith(safe))


def _call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]}


def environ_with(folder: Path) -> dict[str, str]:
    """A folder with the manifest in it."""
    agents = folder / "agents"
    agents.mkdir()
    entry = ENTRY.model_dump(mode="json", exclude_defaults=True)
    manifest = {"name": "awkward", "description": "Awkward tools.", "prompt": "You are awkward.", "servers": [entry]}
    (agents / "awkward.yaml").write_text(yaml.safe_dump(manifest))
    return {"PATH": os.environ["PATH"], "AGENTS_DIR": str(agents), "DATA_DIR": str(folder)}


@asynccontextmanager
async def placed(folder: Path, model: OpenAIServer, remote: bool) -> AsyncIterator[Caller]:
    access = {"OPENAI_ENDPOINT": model.address, "OPENAI_API_KEY": "sk-test", "OPENAI_MODEL_NAME": "m"}
    environ = environ_with(folder) | access
    async with AsyncExitStack() as stack:
        if remote:
            app = partial(create_agent_app, name="awkward")
            url = await stack.enter_async_context(serving(app, environ))
            environ |= {"DISTRIBUTED_AGENTS": "awkward", "AWKWARD_AGENT_URL": url}
        url = await stack.enter_async_context(serving(create_app, environ))
        yield await stack.enter_async_context(calling(url))


@pytest.mark.parametrize("remote", [False, True], ids=["inside", "remote"])
async def test_the_agent_uses_every_tool_by_the_name_its_server_has_for_it(tmp_path: Path, remote: bool) -> None:
    with openai_server() as model:
        model.rules, model.part = refusal, model_part
        async with placed(tmp_path, model, remote) as caller:
            for name, arguments in CALLS.items():
                # All in one conversation: what was called stays in the requests that follow.
                events = await caller.ask(json.dumps([name, arguments]), context_id="c")
                ending = check(events)
                assert isinstance(ending, FinalResult), name
                own = name.removeprefix("awkward_")
                assert f"{own} got {json.dumps(arguments)}" in ending.text
                started = [(event.agent, event.tool) for event in events if isinstance(event, ToolStarted)]
                assert started == [("awkward", name)]
                assert [event.agent for event in events if isinstance(event, AgentStarted)] == ["awkward"]
                assert all(event.ok for event in events if isinstance(event, ToolFinished | AgentFinished))


async def test_doctor_says_what_was_changed_or_left_out(tmp_path: Path) -> None:
    report = await diagnose(load_settings(environ_with(tmp_path), env_file=None))
    (agent,) = [agent for agent in report.agents if agent.name == "awkward"]
    assert agent.usable
    warnings = "\n".join(agent.warnings)
    assert "15 of 139 tools are left out, as models accept no more than 124 (filler_115 is the first)" in warnings
    assert "not_an_object of the awkward server is left out: its arguments are not an object" in warnings
    assert "request_user_input of the awkward server is called awkward_request_user_input here" in warnings
    assert "apps.list as apps_list" in warnings
    assert "task as awkward_task" in warnings


async def test_alternatives_are_one_object_and_a_sentence(mcp_servers: Start) -> None:
    servers = await mcp_servers(ENTRY)
    by_name = {tool.name: tool for tool in servers.tools("demo")}
    assert by_name["by_name_or_id"].args_schema == {
        "type": "object",
        "properties": {"name": {"type": "string"}, "id": {"type": "integer"}},
    }
    assert "Give one of these combinations of arguments: `name`; `id`." in by_name["by_name_or_id"].description
