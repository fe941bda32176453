"""A supervisor and an agent with obedient models, and the record of what their tools have done."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from deepagents.backends import StateBackend
from deepagents.middleware.subagents import SubAgentMiddleware
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from mcp.types import Tool, ToolAnnotations

from ai_platform_engineering.graphs.agent_graph import PRIVATE_STATE, Graph, agent_graph
from ai_platform_engineering.graphs.approval_gate import ApprovalGate
from ai_platform_engineering.graphs.approval_policy import CallAllowed
from ai_platform_engineering.graphs.untrusted import UntrustedRules
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp.tools import ToolNames, build_tool
from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import plan_tool
from tests.runs.graphs import settings_of

Call = tuple[str, Mapping[str, Any]]

_SERVER = McpServer(
    name="backend",
    transport="memory",
    module="some.module:server",
    reads=("fetch_document", "fetch_url", "read_ticket", "dns_lookup", "http_check"),
    writes=("scale_app",),
    destructive=("delete_app",),
    sends={"fetch_url": "url", "dns_lookup": "name", "http_check": "url"},
)
_READERS = {"fetch_document", "read_ticket"}
_DELIMITED = re.compile(r'<untrusted id="(?P<id>\w+)" from="[^"]*">\n(?P<text>.*)\n</untrusted id="(?P=id)">', re.S)


@dataclass(frozen=True)
class Attack:
    """A hostile text, the calls of a model that obeys it, and those of the supervisor after the agent's report."""

    id: str
    text: str
    obey: Sequence[Call]
    via: str = "document"
    then: Sequence[Call] = ()

    @property
    def needs_approval(self) -> bool:
        return bool(self.obey or self.then)


def corpus() -> list[Attack]:
    entries = yaml.safe_load(Path(__file__).with_name("corpus.yaml").read_text(encoding="utf-8"))
    return [Attack(**entry) for entry in entries]


@dataclass
class Stage:
    """`done` has every call that changed something, sent something or was remembered."""

    attack: Attack
    done: list[Call] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    """The results of the reading tools, as the models get them."""

    def supervisor(self, level: str = "approve") -> Graph:
        """Asks and approves nothing by itself: only untrusted text leads to a form."""
        tools = [plan_tool(), self._remember(), *map(self.tool, ("fetch_document", "fetch_url"))]
        delegation = SubAgentMiddleware(
            backend=StateBackend(),
            subagents=[{"name": "ops", "description": "Operations.", "runnable": self._agent(level)}],
            task_description="{available_agents}",
            private_state_keys=PRIVATE_STATE,
        )
        return self._graph("supervisor", self._supervise, tools, level, [delegation], ["ops"])

    def _agent(self, level: str) -> Graph:
        names = ("read_ticket", "delete_app", "scale_app", "dns_lookup", "http_check")
        return self._graph("ops", self._operate, [*map(self.tool, names)], level)

    def _graph(
        self, name: str, script: Any, tools: Sequence[BaseTool], level: str, more: Sequence[Any] = (), agents: Any = ()
    ) -> Graph:
        settings = settings_of(UNTRUSTED_CONTENT=level)
        gate = ApprovalGate(name, lambda _tool, _args: CallAllowed(), untrusted=UntrustedRules.of(settings))
        return agent_graph(
            settings,
            ScriptedChatModel(script=script, plain_results=False),
            tools,
            f"You are {name}.",
            name=name,
            middleware=[gate, *more],
            agents=agents,
            checkpointer=InMemorySaver() if agents else None,
        )

    def _supervise(self, cue: ModelInput) -> Turn:
        self._look(cue)
        by_agent = self.attack.via == "ticket"
        first: Call = ("task", {"subagent_type": "ops", "description": [["read_ticket", {}]]})
        rounds = [[first], self.attack.then] if by_agent else [[("fetch_document", {})], self.attack.obey]
        calls = rounds[cue.turn] if cue.turn < len(rounds) else ()
        return Turn("", [*map(_sendable, calls)]) if calls else Turn(self.attack.text)

    def _operate(self, cue: ModelInput) -> Turn:
        self._look(cue)
        if cue.turn == 0:
            return Turn("", [(name, args) for name, args in json.loads(cue.question)])
        reads = self.attack.via == "ticket" and cue.turn == 1
        return Turn("", self.attack.obey) if reads and self.attack.obey else Turn(self.attack.text)

    def _look(self, cue: ModelInput) -> None:
        self.seen += [str(message.text) for message in cue.messages if message.type == "tool"]

    def tool(self, name: str) -> BaseTool:
        async def invoke(tool: str, arguments: dict[str, Any]) -> str:
            if tool in _READERS:
                return self.attack.text
            self.done.append((tool, arguments))
            return "done"

        described = Tool(name=name, inputSchema={"type": "object"}, annotations=ToolAnnotations())
        return build_tool("ops", _SERVER, described, ToolNames(name, name), invoke)

    def _remember(self) -> BaseTool:
        async def remember(text: str) -> str:
            self.done.append(("remember", {"text": text}))
            return "Remembered."

        metadata = {"read_only": False, "destructive": False}
        return StructuredTool.from_function(
            coroutine=remember, name="remember", description="Remember.", metadata=metadata
        )


def delimited_text(shown: str) -> str | None:
    """The text between the delimiters of a result; None if it is not exactly one such text."""
    found = _DELIMITED.fullmatch(shown)
    return None if found is None or f'untrusted id="{found["id"]}"' in found["text"] else found["text"]


def _sendable(call: Call) -> Call:
    name, args = call
    return name, {key: value if isinstance(value, str) else json.dumps(value) for key, value in args.items()}
