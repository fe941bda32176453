"""The tools with which a model uses skills, and which skill a call reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

READ_SKILL: Final = "read_skill"
SEARCH_SKILLS: Final = "search_skills"
SKILL_TOOLS: Final = frozenset({READ_SKILL, SEARCH_SKILLS})
"""Tools that give a model instructions. Calling them is no work and has no outcome that a person must check."""

MAX_SHOWN_NAME: Final = 64
"""A model may send a name of any length; the name of a skill has no more characters."""


def skill_of(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """The name of the skill that a tool call reads; None for every other call."""
    name = arguments.get("name")
    return plain_name(name)[:MAX_SHOWN_NAME] or None if tool == READ_SKILL and isinstance(name, str) else None


def plain_name(name: str) -> str:
    """The name as the catalog has it, from how people and models write it: `/Incident_Triage`."""
    return name.strip().removeprefix("/").lower().replace("_", "-")
