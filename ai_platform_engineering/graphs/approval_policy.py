"""The approval policy of one agent: which tool calls run, which need a person's approval, and which are refused.

The most specific approval level wins, in this order: override for the tool, override for the agent, the manifest's
level for the tool, the manifest's level for the agent, `REQUIRE_APPROVAL`, the default for the kind of backend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from langchain_core.tools import BaseTool

from ai_platform_engineering.approvals.effects import Conditions, Effect, matching_argument
from ai_platform_engineering.manifest import AgentManifest
from ai_platform_engineering.policy.decisions import Decision
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.settings.approval_overrides import Level, Overrides, parse_overrides

ToolKey = tuple[str, str]
"""The name of an MCP server, and the name that this server has for the tool."""

_OFFLINE: Final = (
    "the offline model chooses tools by matching words, so it may only read from a real backend; "
    "set LLM_PROVIDER to the provider of a real model"
)


@dataclass(frozen=True, slots=True)
class CallAllowed:
    """The call runs without approval."""


@dataclass(frozen=True, slots=True)
class ApprovalRequired:
    """The call waits for a person's approval. The form shows the effect and, if there is one, a sentence about why."""

    effect: Effect
    why: str = ""


@dataclass(frozen=True, slots=True)
class CallRefused:
    """The call does not run. `reason` completes the sentence "<tool> was not called: ..."."""

    reason: str


Verdict = CallAllowed | ApprovalRequired | CallRefused


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool of an MCP server. `name` is the server's own name for it."""

    server: str
    name: str
    effect: Effect

    @classmethod
    def of(cls, tool: BaseTool) -> Self | None:
        """None for a built-in tool, which has no effect outside the conversation."""
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
    """`levels`, `destructive_when` and `deny` are the manifest's rules by tool; `default` applies to all other tools.

    With `offline_on_real_backend`, only calls that read are allowed.
    """

    agent: str
    default: Level
    overrides: Overrides
    levels: Mapping[ToolKey, Level]
    destructive_when: Mapping[ToolKey, Conditions] = field(default_factory=dict)
    deny: Mapping[ToolKey, Conditions] = field(default_factory=dict)
    offline_on_real_backend: bool = False

    @classmethod
    def of(cls, settings: Settings, manifest: AgentManifest, *, sandboxed: bool, offline: bool = False) -> Self:
        """`sandboxed`: the agent's tools are those of the sandbox. `offline`: the offline model chooses the calls."""
        # The manifest's rules about arguments are for its own servers; the sandbox has other tools.
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
        """The decision about a call with these arguments."""
        known = KnownTool.of(tool)
        if known is None:
            return CallAllowed()
        if denied := matching_argument(self.deny.get(known.key, {}), args):
            return CallRefused(f"the manifest of {self.agent} denies this value of {denied!r}")
        effect = self._effect(known, args)
        if self.offline_on_real_backend and effect != "read":
            return CallRefused(_OFFLINE)
        return ApprovalRequired(effect) if _needs_approval(self.level(tool.name, known), effect) else CallAllowed()

    def effect(self, tool: BaseTool, args: Mapping[str, Any]) -> Effect | None:
        """The effect of a call with these arguments; None for a built-in tool."""
        known = KnownTool.of(tool)
        return None if known is None else self._effect(known, args)

    def changes(self, tool: BaseTool, args: Mapping[str, Any]) -> bool:
        """Whether a call with these arguments changes something outside the conversation."""
        known = KnownTool.of(tool)
        return known is not None and self._effect(known, args) != "read"

    def _effect(self, known: KnownTool, args: Mapping[str, Any]) -> Effect:
        raised = matching_argument(self.destructive_when.get(known.key, {}), args) is not None
        return "destructive" if raised else known.effect

    def level(self, tool: str, known: KnownTool) -> Level:
        """The approval level of the tool; `tool` is the agent's name for it."""
        candidates = (
            self.overrides.get(f"{self.agent}.{tool}".lower()),
            self.overrides.get(self.agent.lower()),
            self.levels.get(known.key),
        )
        return next((level for level in candidates if level is not None), self.default)

    def may_ask(self, tool: BaseTool) -> bool:
        """Whether some calls of the tool need approval."""
        known = KnownTool.of(tool)
        if known is None:
            return False
        worst: Effect = "destructive" if known.key in self.destructive_when else known.effect
        return _needs_approval(self.level(tool.name, known), worst)


def effect_of(tool: BaseTool, _args: Mapping[str, Any]) -> Effect | None:
    """The effect of a tool; None for a built-in tool."""
    known = KnownTool.of(tool)
    return None if known is None else known.effect


def restricted(verdict: Verdict, decision: Decision, effect: Effect) -> Verdict:
    """The verdict of the approval levels after a decision of the policy. A refused call stays refused."""
    match verdict, decision.action:
        case (CallRefused(), _) | (_, None):
            return verdict
        case _, "deny":
            return CallRefused(f"the policy denies it. {decision.reason.rstrip('.')}")
        case _, "approve":
            return ApprovalRequired(effect)
        case _:
            return CallAllowed()


def _needs_approval(level: Level, effect: Effect) -> bool:
    match level:
        case "never":
            return False
        case "destructive":
            return effect == "destructive"
        case "writes":
            return effect != "read"
        case "always":
            return True
