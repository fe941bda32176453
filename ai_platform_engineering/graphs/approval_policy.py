"""The approval policy of one agent: which tool calls are made, which wait for a person, and which are refused.

The closest word counts for the level: an override for the tool, an override for the agent, the manifest's word on the
tool, its word on the agent, `REQUIRE_APPROVAL`, and the default for the kind of backend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from langchain_core.tools import BaseTool

from ai_platform_engineering.approvals.conditions import Conditions, matching_argument
from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.settings.approval_overrides import Level, Overrides, parse_overrides

ToolKey = tuple[str, str]
"""A server of the agent and what that server calls one of its tools."""

_OFFLINE: Final = (
    "the offline model chooses tools by matching words, so it may only read from a real backend; "
    "set LLM_PROVIDER to the provider of a real model"
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """The call is made."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The call waits for a person, who is shown its effect."""

    effect: Effect


@dataclass(frozen=True, slots=True)
class Refused:
    """The call is not made. `reason` completes the sentence "<tool> was not called: ..."."""

    reason: str


Verdict = Allowed | Asked | Refused


@dataclass(frozen=True, slots=True)
class KnownTool:
    """What is known of a tool of an MCP server. `name` is what that server calls it."""

    server: str
    name: str
    effect: Effect

    @classmethod
    def of(cls, tool: BaseTool) -> Self | None:
        """None for a tool of our own, which only serves the conversation."""
        facts = tool.metadata or {}
        if not {"server", "read_only", "destructive"} <= facts.keys():
            return None
        effect: Effect = "destructive" if facts["destructive"] else "read" if facts["read_only"] else "write"
        return cls(str(facts["server"]), str(facts.get("tool", tool.name)), effect)

    @property
    def key(self) -> ToolKey:
        return self.server, self.name


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """`levels`, `destructive_when` and `deny` have the manifest's words by tool, `default` the level where nothing else
    is said. With `offline_on_real_backend`, calls that do more than read are refused."""

    agent: str
    default: Level
    overrides: Overrides
    levels: Mapping[ToolKey, Level]
    destructive_when: Mapping[ToolKey, Conditions] = field(default_factory=dict)
    deny: Mapping[ToolKey, Conditions] = field(default_factory=dict)
    offline_on_real_backend: bool = False

    @classmethod
    def of(cls, settings: Settings, manifest: AgentManifest, *, sandboxed: bool, offline: bool = False) -> Self:
        """`sandboxed` says that the agent works on the sandbox, `offline` that the offline model drives it."""
        # What the manifest says about arguments is about its servers; the sandbox has tools of its own.
        servers = () if sandboxed else manifest.servers
        return cls(
            agent=manifest.name,
            default=manifest.approval or settings.approval_level(sandboxed=sandboxed),
            overrides=parse_overrides(settings.require_approval_overrides),
            levels={
                (server.name, tool): level for server in manifest.servers for tool, level in server.approvals.items()
            },
            destructive_when={
                (server.name, tool): conditions
                for server in servers
                for tool, conditions in server.destructive_when.items()
            },
            deny={(server.name, tool): conditions for server in servers for tool, conditions in server.deny.items()},
            offline_on_real_backend=offline and not sandboxed,
        )

    def judge(self, tool: BaseTool, args: Mapping[str, Any]) -> Verdict:
        """What becomes of a call with these arguments."""
        known = KnownTool.of(tool)
        if known is None:
            return Allowed()
        if denied := matching_argument(self.deny.get(known.key, {}), args):
            return Refused(f"the manifest of {self.agent} denies this value of {denied!r}")
        raised = matching_argument(self.destructive_when.get(known.key, {}), args) is not None
        effect: Effect = "destructive" if raised else known.effect
        if self.offline_on_real_backend and effect != "read":
            return Refused(_OFFLINE)
        return Asked(effect) if _waits(self.level(tool.name, known), effect) else Allowed()

    def level(self, tool: str, known: KnownTool) -> Level:
        """The level that counts for the tool; `tool` is what the agent calls it."""
        said = (
            self.overrides.get(f"{self.agent}.{tool}".lower()),
            self.overrides.get(self.agent.lower()),
            self.levels.get(known.key),
        )
        return next((level for level in said if level is not None), self.default)

    def may_ask(self, tool: BaseTool) -> bool:
        """Whether there are calls of the tool that wait for a person."""
        known = KnownTool.of(tool)
        if known is None:
            return False
        worst: Effect = "destructive" if known.key in self.destructive_when else known.effect
        return _waits(self.level(tool.name, known), worst)


def _waits(level: Level, effect: Effect) -> bool:
    match level:
        case "never":
            return False
        case "destructive":
            return effect == "destructive"
        case "writes":
            return effect != "read"
        case "always":
            return True
