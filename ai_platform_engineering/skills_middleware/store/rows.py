"""Rows of a skill store: the same columns in SQLite and Postgres. Pure functions over values."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, Self

from ai_platform_engineering.skills_middleware.skill import Access, Provenance, Skill, SkillContent
from ai_platform_engineering.skills_middleware.store.store import ChangedMeanwhileError, NewSkill, SkillKey


@dataclass(frozen=True, slots=True)
class SkillRow:
    """The columns of a stored skill, in order. JSON escapes NUL, which Postgres cannot store as text."""

    name: str
    visibility: str
    holder: str
    digest: str
    head: str
    content: str

    @classmethod
    def created(cls, new: NewSkill, by: str | None) -> Self:
        now = datetime.now(UTC)
        origin = new.skill.provenance.origin
        return cls._of(new, Provenance("api", origin, added_by=by, added_at=now, updated_by=by, updated_at=now))

    @classmethod
    def replaced(cls, new: NewSkill, stored: Skill, by: str | None) -> Self:
        """The row of `new` in place of `stored`, with the original author and time of `stored`."""
        first = stored.provenance
        return cls._of(
            new,
            Provenance(
                "api",
                new.skill.provenance.origin or first.origin,
                added_by=first.added_by,
                added_at=first.added_at,
                updated_by=by,
                updated_at=datetime.now(UTC),
            ),
        )

    @classmethod
    def _of(cls, new: NewSkill, provenance: Provenance) -> Self:
        skill = replace(new.skill, provenance=provenance)
        return cls(
            skill.name,
            skill.access.visibility,
            skill.access.holder,
            skill.digest,
            json.dumps(asdict(skill), default=datetime.isoformat),
            json.dumps(asdict(new.content)),
        )

    @property
    def skill(self) -> Skill:
        return skill_from(self.head)


def key_values(key: SkillKey) -> tuple[str, str, str]:
    """The values of the primary key's columns."""
    return key.name, key.access.visibility, key.access.holder


def skill_from(head: str) -> Skill:
    values: dict[str, Any] = json.loads(head)
    provenance = values.pop("provenance")
    for moment in ("added_at", "updated_at"):
        if provenance[moment] is not None:
            provenance[moment] = datetime.fromisoformat(provenance[moment])
    return Skill(
        **{
            **values,
            "provenance": Provenance(**provenance),
            "access": Access(**values["access"]),
            "files": tuple(values["files"]),
        }
    )


def content_from(text: str) -> SkillContent:
    return SkillContent(**json.loads(text))


def check_unchanged(key: SkillKey, stored: str, expected: str | None) -> None:
    """Raise `ChangedMeanwhileError` if the stored digest is not the expected one. None accepts any digest."""
    if expected is not None and stored != expected:
        raise ChangedMeanwhileError(key, stored)
