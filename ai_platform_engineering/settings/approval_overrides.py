"""Parses `REQUIRE_APPROVAL_OVERRIDES`, for example `jira=never, argocd.delete_application=always`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, get_args

Level = Literal["never", "destructive", "writes", "always"]
"""Which tool calls need an approval: none, destructive ones, all that change something, all."""

OVERRIDES_VARIABLE: Final = "REQUIRE_APPROVAL_OVERRIDES"
ALLOWED_OVERRIDES: Final = f"agent=level or agent.tool=level, comma-separated; levels: {', '.join(get_args(Level))}"

Overrides = Mapping[str, Level]
"""Levels by `agent` or `agent.tool`, in lower case."""

_LEVELS: Final[dict[str, Level]] = {level: level for level in get_args(Level)}
_TARGET: Final = re.compile(r"[a-z][a-z0-9_-]*(\.\S+)?")


class OverridesError(ValueError):
    """An override is invalid. `override` is its text, `allowed` describes the valid form."""

    def __init__(self, override: str, allowed: str) -> None:
        super().__init__(f"{override!r} must be {allowed}")
        self.override = override
        self.allowed = allowed


def parse_overrides(text: str) -> Overrides:
    overrides: dict[str, Level] = {}
    for override in filter(None, (token.strip() for token in text.split(","))):
        target, _, level = (part.strip().lower() for part in override.partition("="))
        if not _TARGET.fullmatch(target) or level not in _LEVELS:
            raise OverridesError(override, ALLOWED_OVERRIDES)
        if overrides.setdefault(target, _LEVELS[level]) != level:
            raise OverridesError(override, f"given once; {target}={overrides[target]} is set as well")
    return MappingProxyType(overrides)


def unknown_agents(overrides: Overrides, known: Sequence[str]) -> list[str]:
    """One message for each agent in an override that is not in `known`."""
    named = {target.partition(".")[0] for target in overrides}
    return [
        f"{OVERRIDES_VARIABLE} names {agent!r}, which is not a known agent."
        f"{_suggestion(agent.replace('-', '_'), known, 'agents')}"
        for agent in sorted(named - set(known))
    ]


def unknown_tools(overrides: Overrides, agent: str, tools: Sequence[str]) -> list[str]:
    """One message for each tool in an override that the agent does not have."""
    by_folded = {tool.lower(): tool for tool in tools}
    named = {tool for owner, _, tool in (target.partition(".") for target in overrides) if owner == agent and tool}
    return [
        f"{OVERRIDES_VARIABLE} names {f'{agent}.{tool}'!r}, a tool that the agent does not have."
        f"{_suggestion(tool, list(by_folded), 'tools')}"
        for tool in sorted(named - by_folded.keys())
    ]


def _suggestion(name: str, known: Sequence[str], kind: str) -> str:
    if near := difflib.get_close_matches(name, known, n=1):
        return f" Did you mean {near[0]!r}?"
    return f" Known {kind}: {', '.join(known)}." if known else f" There are no {kind}."
