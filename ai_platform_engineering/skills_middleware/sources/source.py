"""The interface between the catalog and a source of skills."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent, SkillProblem, SourceKind


@dataclass(frozen=True, slots=True)
class LoadedSkills:
    """The usable skills of a source, and the problems of the others. `commit` is set for a Git repository."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[SkillProblem, ...] = ()
    commit: str | None = None


class SkillGoneError(LookupError):
    """A skill is no longer where the catalog found it."""


class SourceUnavailableError(Exception):
    """A source cannot be read, so its skills stay as loaded last. The text has the reason and the way out."""


class SkillSource(ABC):
    """`name` is unique in the catalog, for example `directory` or `git:https://git.example.com/skills.git`."""

    name: str
    kind: SourceKind

    @abstractmethod
    async def load(self) -> LoadedSkills:
        """Load all skills; unusable ones become problems. Raises `SourceUnavailableError`."""

    @abstractmethod
    async def content(self, skill: Skill) -> SkillContent:
        """The contents of one of its skills; raises `SkillGoneError` or `SourceUnavailableError`."""

    async def changed(self) -> bool:
        """Whether loading again would give another result. Called before every turn, so it must be cheap."""
        return False

    async def changes(self) -> AsyncGenerator[None]:
        """Yield each time the source has changed and has to be loaded again."""
        return
        yield

    async def refresh(self) -> None:  # noqa: B027 - most sources have no copy
        """Update a local copy. The next `load` reports a failure as a problem."""
