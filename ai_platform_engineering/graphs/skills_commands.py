"""Calling a skill by its name: `/incident-triage payments-api`. Pure functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from ai_platform_engineering.runs.skill_calls import plain_name
from ai_platform_engineering.skills_middleware.view import SkillView

_COMMAND: Final = re.compile(r"\s*/(?P<name>[A-Za-z0-9][A-Za-z0-9_-]{0,63})(?:\s+(?P<rest>.*))?", re.DOTALL)

_MIN_LIKENESS: Final = 0.75
"""A sentence that begins with a path, such as `/healthz returns 503`, is no mistyped command. A name with a hyphen is
always taken for one: most skills have such names, and few paths do."""


@dataclass(frozen=True, slots=True)
class Command:
    """A skill and what it is to be used for."""

    skill: str
    arguments: str


@dataclass(frozen=True, slots=True)
class UnknownCommand:
    """A command for a skill that does not exist, and the names that it may stand for."""

    name: str
    near: tuple[str, ...]


def command_of(text: str, view: SkillView) -> Command | UnknownCommand | None:
    """The command that a message is; None for a message that is none."""
    found = _COMMAND.fullmatch(text)
    if found is None:
        return None
    name, arguments = plain_name(found["name"]), (found["rest"] or "").strip()
    if name in view.skills:
        return Command(name, arguments)
    near = tuple(view.near(name))
    alike = tuple(other for other in near if SequenceMatcher(None, name, other).ratio() >= _MIN_LIKENESS)
    if alike or not arguments or "-" in name:
        return UnknownCommand(name, alike or near)
    return None
