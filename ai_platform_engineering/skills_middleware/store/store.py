"""The interface of a skill store: keys, optimistic concurrency with digests, and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ai_platform_engineering.skills_middleware.skill import GLOBAL, Access, Skill, SkillContent


@dataclass(frozen=True, slots=True)
class SkillKey:
    """What identifies a stored skill: two people may each have a personal skill of the same name."""

    name: str
    access: Access = GLOBAL

    @classmethod
    def of(cls, skill: Skill) -> SkillKey:
        return cls(skill.name, skill.access)

    def __str__(self) -> str:
        return f"{self.access.visibility} skill {self.name}"


@dataclass(frozen=True, slots=True)
class NewSkill:
    """A checked skill to be stored. The store itself sets who added and updated it, and when."""

    skill: Skill
    content: SkillContent

    @property
    def key(self) -> SkillKey:
        return SkillKey.of(self.skill)


class StoreError(Exception):
    """The store cannot be used now. The text is a sentence with the reason and the way out, without credentials."""


class NotFoundError(LookupError):
    def __init__(self, key: SkillKey) -> None:
        self.key = key
        super().__init__(f"There is no {key}.")


class AlreadyExistsError(Exception):
    """`digest` is that of the stored skill."""

    def __init__(self, key: SkillKey, digest: str) -> None:
        self.key, self.digest = key, digest
        super().__init__(f"The {key} exists already.")


class ChangedMeanwhileError(Exception):
    """The stored skill has another digest than the caller expects. `digest` is the current one."""

    def __init__(self, key: SkillKey, digest: str) -> None:
        self.key, self.digest = key, digest
        super().__init__(f"The {key} has been changed meanwhile.")


class SkillStore(Protocol):
    """Every method may raise `StoreError`. `by` is the subject of the caller, None where it is not known."""

    async def create(self, new: NewSkill, by: str | None) -> Skill:
        """Store a skill; raises `AlreadyExistsError`."""
        ...

    async def replace(self, key: SkillKey, new: NewSkill, digest: str | None, by: str | None) -> Skill:
        """Store `new` in place of the skill with `key`, whose name and access may change with it.

        `digest` is the one that the caller has seen; None replaces any. Raises `NotFoundError`,
        `ChangedMeanwhileError`, or `AlreadyExistsError` where another skill has the new key.
        """
        ...

    async def delete(self, key: SkillKey, digest: str | None) -> None:
        """Remove a skill; raises `NotFoundError` or `ChangedMeanwhileError`."""
        ...

    async def get(self, key: SkillKey) -> Skill:
        """One skill as it is stored now; raises `NotFoundError`."""
        ...

    async def content(self, key: SkillKey) -> SkillContent:
        """The contents of one skill; raises `NotFoundError`."""
        ...

    async def load(self) -> tuple[Skill, ...]:
        """All skills."""
        ...

    async def version(self) -> str:
        """A value that differs after every change, also after one by another process. Cheap."""
        ...

    async def aclose(self) -> None: ...
