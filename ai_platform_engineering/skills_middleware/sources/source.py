"""What the catalog asks of a source."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from ai_platform_engineering.skills_middleware.problems import Problem
from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent, SourceKind


@dataclass(frozen=True, slots=True)
class Loaded:
    """The skills of a source, and what could not be used of it. `commit` is that of a Git repository."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[Problem, ...] = ()
    commit: str | None = None


class SkillGoneError(LookupError):
    """A skill is no longer where the catalog found it."""


class SourceUnavailableError(Exception):
    """A source cannot be read now; its skills stay as they were loaded last. The text says why and what to do."""


class Source(ABC):
    """`name` is unique in the catalog, such as `directory` or `git:https://git.example.com/skills.git`."""

    name: str
    kind: SourceKind

    @abstractmethod
    async def load(self) -> Loaded:
        """Every usable skill. A skill that cannot be used is a problem; raises `SourceUnavailableError`."""

    @abstractmethod
    async def content(self, skill: Skill) -> SkillContent:
        """The contents of one of its skills; raises `SkillGoneError` or `SourceUnavailableError`."""

    async def changed(self) -> bool:
        """Whether loading again would give something else, where that is cheap to know. Asked before every turn."""
        return False

    async def changes(self) -> AsyncGenerator[None]:
        """Yields each time the source has changed by itself and has to be loaded again."""
        return
        yield

    async def refresh(self) -> None:  # noqa: B027 - most sources have no copy
        """Bring a local copy up to date. A failure is a problem of the next load."""
