"""Skill commands: messages such as `/incident-triage payments-api`. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from ai_platform_engineering.runs.skill_calls import plain_name
from ai_platform_engineering.skills_middleware.view import SkillView

_COMMAND: Final = re.compile(r"\s*/(?P<name>[A-Za-z0-9][A-Za-z0-9_-]{0,63})(?:\s+(?P<rest>.*))?", re.DOTALL)

_MIN_LIKENESS: Final = 0.75
"""Minimum similarity to a known name. `/healthz returns 503` begins with a path and is not a mistyped command. A name
with a hyphen always counts as a command: most skills have such names, and few paths do."""


@dataclass(frozen=True, slots=True)
class SkillCommand:
    """The name of a skill, and the text after it."""

    skill: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """A command for a skill that does not exist, with similar names."""

    name: str
    near: tuple[str, ...]


def command_of(text: str, view: SkillView) -> SkillCommand | UnknownCommand | None:
    """The command in a message; None if the message is not a command."""
    found = _COMMAND.fullmatch(text)
    if found is None:
        return None
    name, arguments = plain_name(found["name"]), (found["rest"] or "").strip()
    if name in view.skills:
        return SkillCommand(name, arguments)
    near = tuple(view.near(name))
    alike = tuple(other for other in near if SequenceMatcher(None, name, other).ratio() >= _MIN_LIKENESS)
    if alike or not arguments or "-" in name:
        return UnknownCommand(name, alike or near)
    return None
