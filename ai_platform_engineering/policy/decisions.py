"""Decisions of the policy. The first rule that matches decides; without one, the default does. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, Final, Literal, Self, get_args

from ai_platform_engineering.approvals.deciders import Deciders
from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.policy.tool_pattern import ToolPattern

Action = Literal["allow", "approve", "deny"]
"""`approve`: a tool call waits for an approval. What is denied is neither seen nor used."""

Kind = Literal["agents", "workflows", "skills", "knowledge"]
"""Kinds of things that a principal sees and uses, or does not."""

ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
_EVERYBODY: Final = "*"
_GROUP: Final = "group:"


@dataclass(frozen=True, slots=True)
class Rule:
    """`who` has subjects, groups as `group:<name>`, and `*`. `name` is shown in explanations."""

    name: str
    who: frozenset[str]
    action: Action
    tools: tuple[ToolPattern, ...] = ()
    effects: frozenset[Effect] = frozenset()
    """Only calls with one of these effects; empty: any."""
    things: Mapping[Kind, tuple[str, ...]] = field(default_factory=dict)
    """Patterns of names by kind."""
    approvers: Deciders = field(default_factory=Deciders)

    def is_for(self, principal: Principal, groups: frozenset[str]) -> bool:
        return (
            _EVERYBODY in self.who
            or (principal.subject is not None and principal.subject in self.who)
            or any(f"{_GROUP}{group}" in self.who for group in groups)
        )

    def matches_call(self, agent: str, tool: str, arguments: Mapping[str, Any], effect: Effect) -> bool:
        """Whether the rule decides about the call. To allow a call, a pattern must match all values of the arguments
        that it names; to stop a call, one value is enough."""
        if self.effects and effect not in self.effects:
            return False
        return any(
            pattern.names(agent, tool)
            and (pattern.covers(arguments) if self.action == "allow" else pattern.touches(arguments))
            for pattern in self.tools
        )

    def named_arguments(self, agent: str, tool: str, arguments: Mapping[str, Any]) -> frozenset[str]:
        """The arguments whose values the rule names, of a call that it matches."""
        matching = (each for each in self.tools if each.names(agent, tool) and each.covers(arguments))
        return frozenset(name for pattern in matching for name, _ in pattern.arguments)

    def hides_tool(self, agent: str, tool: str, effect: Effect) -> bool | None:
        """True if the rule denies every call of the tool, False if it decides about every call otherwise, None if not
        all calls are decided by it."""
        if self.effects and effect not in self.effects:
            return None
        if any(pattern.names(agent, tool) and not pattern.arguments for pattern in self.tools):
            return self.action == "deny"
        return None

    def matches_thing(self, kind: Kind, name: str) -> bool:
        return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in self.things.get(kind, ()))

    def facts(self) -> dict[str, Any]:
        """The rule as a JSON object, without `who`: it applies to the principal of a run."""
        return {
            "name": self.name,
            "action": self.action,
            "tools": [*map(str, self.tools)],
            "effects": sorted(self.effects),
            "approvers": self.approvers.facts(),
        }

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        return cls(
            facts["name"],
            frozenset({_EVERYBODY}),
            facts["action"],
            tuple(map(ToolPattern.parse, facts["tools"])),
            frozenset(facts["effects"]),
            approvers=Deciders.read(facts["approvers"]),
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """`action` is None if no rule decides about a tool call: then its approval level does. `reason` is a sentence."""

    action: Action | None
    reason: str
    approvers: Deciders = field(default_factory=Deciders)
    arguments: frozenset[str] = frozenset()
    """The arguments of a tool call whose values the rule names."""


@dataclass(frozen=True, slots=True)
class PrincipalPolicy:
    """The rules that apply to one principal, in order. `default` is for what no rule names."""

    rules: tuple[Rule, ...] = ()
    default: Literal["allow", "deny"] = "allow"

    def call(self, agent: str, tool: str, arguments: Mapping[str, Any], effect: Effect) -> Decision:
        for rule in self.rules:
            if rule.matches_call(agent, tool, arguments, effect):
                named = rule.named_arguments(agent, tool, arguments)
                return Decision(rule.action, f"The rule {rule.name!r} decides.", rule.approvers, named)
        if self.default == "deny":
            return Decision("deny", "No rule allows it, and the default is deny.")
        return Decision(None, "No rule is about it; the approval level of the tool decides.")

    def hides_tool(self, agent: str, tool: str, effect: Effect) -> bool:
        """Whether every call of the tool is denied, so that the model need not know it."""
        for rule in self.rules:
            if (hidden := rule.hides_tool(agent, tool, effect)) is not None:
                return hidden
            if rule.action != "deny" and any(pattern.names(agent, tool) for pattern in rule.tools):
                return False
        return self.default == "deny"

    def thing(self, kind: Kind, name: str) -> Decision:
        for rule in self.rules:
            if rule.matches_thing(kind, name):
                return Decision(rule.action, f"The rule {rule.name!r} decides.")
        return Decision(self.default, f"No rule is about it, and the default is {self.default}.")

    def sees(self, kind: Kind, name: str) -> bool:
        return self.thing(kind, name).action != "deny"

    def restricts(self, kind: Kind) -> bool:
        """Whether something of the kind may be hidden."""
        return self.default == "deny" or any(rule.action == "deny" and rule.things.get(kind) for rule in self.rules)

    def hidden(self, kind: Kind, names: Iterable[str]) -> frozenset[str]:
        return frozenset(name for name in names if not self.sees(kind, name))

    def for_agent(self, agent: str) -> dict[str, Any]:
        """The rules about the tools of one agent as a JSON object, for the process of that agent."""
        about = [rule for rule in self.rules if any(fnmatchcase(agent.casefold(), each.agent) for each in rule.tools)]
        return {"default": self.default, "rules": [rule.facts() for rule in about]}

    @classmethod
    def read(cls, facts: Mapping[str, Any]) -> Self:
        """The rules that `for_agent` has written. Anything else raises, so that damaged rules are not read as none."""
        return cls(tuple(map(Rule.read, facts["rules"])), "deny" if facts["default"] == "deny" else "allow")


NO_POLICY: Final = PrincipalPolicy()


@dataclass(frozen=True, slots=True)
class Policy:
    """All rules of a file. `members` are the subjects of the groups that the file itself defines."""

    rules: tuple[Rule, ...] = ()
    default: Literal["allow", "deny"] = "allow"
    members: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def of(self, principal: Principal) -> PrincipalPolicy:
        if not self.rules and self.default == "allow":
            return NO_POLICY
        groups = self.groups_of(principal)
        return PrincipalPolicy(tuple(rule for rule in self.rules if rule.is_for(principal, groups)), self.default)

    def with_groups(self, principal: Principal) -> Principal:
        """The principal with the groups that the file puts it into."""
        return replace(principal, groups=self.groups_of(principal)) if self.members else principal

    def groups_of(self, principal: Principal) -> frozenset[str]:
        """The verified groups of the principal, and those of the file in which it is."""
        own = (group for group, subjects in self.members.items() if principal.subject in subjects)
        return principal.groups | frozenset(own)
