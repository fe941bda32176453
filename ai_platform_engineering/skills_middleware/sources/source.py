"""What the catalog asks of a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ai_platform_engineering.skills_middleware.problems import Problem
from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent, SourceKind


@dataclass(frozen=True, slots=True)
class Loaded:
    """The skills of a source, and what could not be used of it."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[Problem, ...] = ()


class SkillGoneError(LookupError):
    """A skill is no longer where the catalog found it."""


class Source(Protocol):
    """`name` is unique in the catalog, such as `directory` or `git:https://git.example.com/skills.git`."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> SourceKind: ...

    async def load(self) -> Loaded:
        """Every usable skill. A skill that cannot be used is a problem, not an exception."""
        ...

    async def content(self, skill: Skill) -> SkillContent:
        """The contents of one of its skills; raises `SkillGoneError`."""
        ...
