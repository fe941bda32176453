"""The approval policy of one agent: which of its tools wait for a person.

The closest word counts: an override for the tool, an override for the agent, the manifest's word on the tool, its word
on the agent, `REQUIRE_APPROVAL`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from langchain_core.tools import BaseTool

from ai_platform_engineering.agents.manifest import AgentManifest
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.approvals.overrides import Level, Overrides, parse_overrides


@dataclass(frozen=True, slots=True)
class Effects:
    """What is known of a tool of an MCP server. `name` is what that server calls it."""

    server: str
    name: str
    read_only: bool
    destructive: bool

    @classmethod
    def of(cls, tool: BaseTool) -> Self | None:
        """None for a tool of our own, which only serves the conversation."""
        facts = tool.metadata or {}
        if not {"server", "read_only", "destructive"} <= facts.keys():
            return None
        name = facts.get("tool", tool.name)
        return cls(str(facts["server"]), str(name), bool(facts["read_only"]), bool(facts["destructive"]))


@dataclass(frozen=True, slots=True)
class ApprovalPolicy:
    """`tools` has the manifest's levels by server and tool, `default` the level where nothing else is said."""

    agent: str
    default: Level
    overrides: Overrides
    tools: Mapping[tuple[str, str], Level]

    @classmethod
    def of(cls, settings: Settings, manifest: AgentManifest) -> Self:
        tools = {(server.name, tool): level for server in manifest.servers for tool, level in server.approvals.items()}
        default = manifest.approval or settings.require_approval
        return cls(manifest.name, default, parse_overrides(settings.require_approval_overrides), tools)

    def level(self, tool: str, effects: Effects) -> Level:
        """The level that counts for the tool; `tool` is what the agent calls it."""
        said = (
            self.overrides.get(f"{self.agent}.{tool}".lower()),
            self.overrides.get(self.agent.lower()),
            self.tools.get((effects.server, effects.name)),
        )
        return next((level for level in said if level is not None), self.default)

    def needs(self, tool: BaseTool) -> bool:
        """Whether a call of the tool waits for a person."""
        effects = Effects.of(tool)
        if effects is None:
            return False
        match self.level(tool.name, effects):
            case "never":
                return False
            case "destructive":
                return effects.destructive
            case "writes":
                return not effects.read_only
            case "always":
                return True
