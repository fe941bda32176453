"""The JSON of the skills API, and its entity tags: the digest of a skill in quotes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ai_platform_engineering.skills_middleware.scanning import Finding, Severity
from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent, SkillProblem, SourceKind, Visibility
from ai_platform_engineering.skills_middleware.view import Overridden, SkillView


class OverriddenView(BaseModel):
    """A skill of the same name that is not in effect, and the reason."""

    source: SourceKind
    origin: str
    visibility: Visibility
    team: str | None
    reason: str

    @classmethod
    def of(cls, hidden: Overridden) -> Self:
        skill = hidden.skill
        return cls(
            source=skill.provenance.kind,
            origin=skill.provenance.origin,
            visibility=skill.access.visibility,
            team=_team(skill),
            reason=hidden.reason,
        )


class SkillSummary(BaseModel):
    """A skill without its text."""

    name: str
    description: str
    visibility: Visibility
    team: str | None = Field(description="The team of a team skill.")
    source: SourceKind
    origin: str = Field(description="A path, a repository with its commit, or the address of an API client.")
    license: str | None
    compatibility: str | None
    metadata: dict[str, str]
    tags: list[str]
    files: list[str] = Field(description="The paths of the files beside SKILL.md.")
    size: int = Field(description="Bytes of SKILL.md and the files.")
    etag: str = Field(description="The version, for the header If-Match of a change.")
    added_by: str | None
    added_at: datetime | None
    updated_by: str | None
    updated_at: datetime | None
    in_effect: bool = Field(description="False if another skill of the same name overrides this one.")
    overrides: list[OverriddenView] = Field(description="Skills of the same name that this one overrides.")


Model = TypeVar("Model", bound=SkillSummary)


class ListedSkill(SkillSummary):
    document: str | None = Field(None, description="The text of SKILL.md, with include_content.")


class SkillDetail(SkillSummary):
    instructions: str = Field(description="The text of SKILL.md without its front matter.")
    document: str = Field(description="The text of SKILL.md.")
    contents: dict[str, str] | None = Field(None, description="The text of each file, with include_content.")


class ProblemView(BaseModel):
    code: str
    message: str
    path: str = Field(description="The file; empty for the skill as a whole.")

    @classmethod
    def all_of(cls, problems: Iterable[SkillProblem]) -> list[Self]:
        return [cls(code=each.code, message=each.message, path=each.path) for each in problems]


class FindingView(BaseModel):
    """Suspicious content. A skill with a critical finding is refused."""

    severity: Severity
    code: str
    message: str
    path: str
    line: int

    @classmethod
    def all_of(cls, findings: Iterable[Finding]) -> list[Self]:
        return [
            cls(severity=each.severity, code=each.code, message=each.message, path=each.path, line=each.line)
            for each in findings
        ]


class StoredSkill(SkillSummary):
    """A skill after a change, with hints for its author."""

    warnings: list[ProblemView]
    findings: list[FindingView]


class ListMeta(BaseModel):
    total: int = Field(description="Number of matching skills on all pages.")
    limit: int
    offset: int
    generation: int = Field(description="Incremented with every change of the catalog.")


class SkillList(BaseModel):
    skills: list[ListedSkill]
    meta: ListMeta


class SkillBody(BaseModel):
    """A skill as JSON."""

    model_config = ConfigDict(extra="forbid")

    content: str = Field(description="The text of SKILL.md.")
    files: dict[str, str] = Field({}, description="The text of each file beside SKILL.md, by path.")
    visibility: Visibility | None = Field(None, description="global if omitted.")
    team: str | None = Field(None, max_length=200, description="The team of a team skill.")


def summary(model: type[Model], skill: Skill, view: SkillView, **more: Any) -> Model:
    """The skill as `model`. Members beyond those of a summary are passed in `more`."""
    source, in_effect = skill.provenance, view.skills.get(skill.name) == skill
    return model(
        name=skill.name,
        description=skill.description,
        visibility=skill.access.visibility,
        team=_team(skill),
        source=source.kind,
        origin=source.origin,
        license=skill.license,
        compatibility=skill.compatibility,
        metadata=dict(skill.metadata),
        tags=list(skill.tags),
        files=list(skill.files),
        size=skill.size,
        etag=etag(skill.digest),
        added_by=source.added_by,
        added_at=source.added_at,
        updated_by=source.updated_by,
        updated_at=source.updated_at,
        in_effect=in_effect,
        overrides=[OverriddenView.of(hidden) for hidden in view.overridden.get(skill.name, ())] if in_effect else [],
        **more,
    )


def detail(skill: Skill, view: SkillView, content: SkillContent, *, with_files: bool) -> SkillDetail:
    return summary(
        SkillDetail,
        skill,
        view,
        instructions=content.instructions,
        document=content.document,
        contents=dict(content.files) if with_files else None,
    )


def _team(skill: Skill) -> str | None:
    return skill.access.holder if skill.access.visibility == "team" else None


def etag(digest: str) -> str:
    return f'"{digest}"'


def body_etag(body: bytes) -> str:
    return etag(hashlib.sha256(body).hexdigest()[:32])


def is_any_etag(header: str) -> bool:
    return header.strip() == "*"


def etag_matches(header: str, tag: str) -> bool:
    """Whether an If-Match or If-None-Match header contains the tag. Weak tags and tags without quotes are accepted."""
    sent = (each.strip().removeprefix("W/").strip('"') for each in header.split(","))
    return is_any_etag(header) or tag.strip('"') in sent
