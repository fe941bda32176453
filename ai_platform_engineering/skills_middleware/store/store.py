"""The interface of a skill store: keys, optimistic concurrency by digest, and errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ai_platform_engineering.skills_middleware.skill import GLOBAL, Access, Skill, SkillContent


@dataclass(frozen=True, slots=True)
class SkillKey:
    """The identity of a stored skill: two people may each have a personal skill of the same name."""

    name: str
    access: Access = GLOBAL

    @classmethod
    def of(cls, skill: Skill) -> SkillKey:
        return cls(skill.name, skill.access)

    def __str__(self) -> str:
        return f"{self.access.visibility} skill {self.name}"


@dataclass(frozen=True, slots=True)
class NewSkill:
    """A checked skill to be stored. The store sets its author and timestamps."""

    skill: Skill
    content: SkillContent

    @property
    def key(self) -> SkillKey:
        return SkillKey.of(self.skill)


class SkillStoreError(Exception):
    """The store cannot be used. The text has the reason and the way out, without credentials."""


class NotFoundError(LookupError):
    def __init__(self, key: SkillKey) -> None:
        self.key = key
        super().__init__(f"There is no {key}.")


class AlreadyExistsError(Exception):
    """A skill with this key exists; `digest` is its digest."""

    def __init__(self, key: SkillKey, digest: str) -> None:
        self.key, self.digest = key, digest
        super().__init__(f"The {key} exists already.")


class ChangedMeanwhileError(Exception):
    """The stored skill does not have the digest that the caller expects. `digest` is the current one."""

    def __init__(self, key: SkillKey, digest: str) -> None:
        self.key, self.digest = key, digest
        super().__init__(f"The {key} has been changed meanwhile.")


class SkillStore(Protocol):
    """Every method may raise `SkillStoreError`. `by` is the subject of the caller, None if it is unknown."""

    async def create(self, new: NewSkill, by: str | None) -> Skill:
        """Store a skill; raises `AlreadyExistsError`."""
        ...

    async def replace(self, key: SkillKey, new: NewSkill, digest: str | None, by: str | None) -> Skill:
        """Store `new` in place of the skill with `key`. Its name and access may differ.

        `digest` is the digest that the caller expects; None replaces any version. Raises `NotFoundError`,
        `ChangedMeanwhileError`, or `AlreadyExistsError` if another skill has the new key.
        """
        ...

    async def delete(self, key: SkillKey, digest: str | None) -> None:
        """Remove a skill; raises `NotFoundError` or `ChangedMeanwhileError`."""
        ...

    async def get(self, key: SkillKey) -> Skill:
        """The stored skill; raises `NotFoundError`."""
        ...

    async def content(self, key: SkillKey) -> SkillContent:
        """The contents of the stored skill; raises `NotFoundError`."""
        ...

    async def load(self) -> tuple[Skill, ...]:
        """Load all skills."""
        ...

    async def version(self) -> str:
        """A value that changes with every write, also by other processes. Cheap."""
        ...

    async def aclose(self) -> None: ...
