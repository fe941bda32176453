"""The tools with which a model uses skills, and the name of the skill that a call reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

READ_SKILL: Final = "read_skill"
SEARCH_SKILLS: Final = "search_skills"
SKILL_TOOLS: Final = frozenset({READ_SKILL, SEARCH_SKILLS})
"""Tools that give a model instructions. Their calls do no work on a backend and have no outcome to check."""

MAX_SHOWN_NAME: Final = 64
"""The maximum length of a skill name. Longer names from a model are cut."""


def skill_of(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """The name of the skill that a tool call reads; None for every other call."""
    name = arguments.get("name")
    return plain_name(name)[:MAX_SHOWN_NAME] or None if tool == READ_SKILL and isinstance(name, str) else None


def plain_name(name: str) -> str:
    """The name as it is in the catalog, from a spelling such as `/Incident_Triage`."""
    return name.strip().removeprefix("/").lower().replace("_", "-")
