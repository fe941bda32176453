"""Overrides of the approval policy as they stand in a variable: `jira=never, argocd.delete_application=always`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, get_args

Level = Literal["never", "destructive", "writes", "always"]
"""Which calls wait for a person: none, those that destroy, those that change anything, all."""

OVERRIDES_VARIABLE: Final = "REQUIRE_APPROVAL_OVERRIDES"
ALLOWED_OVERRIDES: Final = f"agent=level or agent.tool=level, comma-separated; levels: {', '.join(get_args(Level))}"

Overrides = Mapping[str, Level]
"""Levels by `agent` or `agent.tool`, in lower case."""

_LEVELS: Final[dict[str, Level]] = {level: level for level in get_args(Level)}
_WHAT: Final = re.compile(r"[a-z][a-z0-9_-]*(\.\S+)?")


class OverridesError(ValueError):
    """An override cannot be used: `override` is as it was written, `allowed` what it must be."""

    def __init__(self, override: str, allowed: str) -> None:
        super().__init__(f"{override!r} must be {allowed}")
        self.override = override
        self.allowed = allowed


def parse_overrides(text: str) -> Overrides:
    overrides: dict[str, Level] = {}
    for override in filter(None, (token.strip() for token in text.split(","))):
        what, _, level = (part.strip().lower() for part in override.partition("="))
        if not _WHAT.fullmatch(what) or level not in _LEVELS:
            raise OverridesError(override, ALLOWED_OVERRIDES)
        if overrides.setdefault(what, _LEVELS[level]) != level:
            raise OverridesError(override, f"said once; {what}={overrides[what]} stands there too")
    return MappingProxyType(overrides)


def unknown_agents(overrides: Overrides, known: Sequence[str]) -> list[str]:
    """A sentence for every agent named in an override that is not among the known ones."""
    named = {what.partition(".")[0] for what in overrides}
    return [
        f"{OVERRIDES_VARIABLE} names {agent!r}, which is no known agent."
        f"{_suggestion(agent.replace('-', '_'), known, 'agents')}"
        for agent in sorted(named - set(known))
    ]


def unknown_tools(overrides: Overrides, agent: str, tools: Sequence[str]) -> list[str]:
    """A sentence for every tool named in an override that the agent has not."""
    by_folded = {tool.lower(): tool for tool in tools}
    named = {tool for owner, _, tool in (what.partition(".") for what in overrides) if owner == agent and tool}
    return [
        f"{OVERRIDES_VARIABLE} names {f'{agent}.{tool}'!r}, a tool the agent has not."
        f"{_suggestion(tool, list(by_folded), 'tools')}"
        for tool in sorted(named - by_folded.keys())
    ]


def _suggestion(name: str, known: Sequence[str], kind: str) -> str:
    if near := difflib.get_close_matches(name, known, n=1):
        return f" Did you mean {near[0]!r}?"
    return f" Known {kind}: {', '.join(known)}." if known else f" There are no {kind}."
