"""The JSON of the skills API."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from ai_platform_engineering.skills_middleware.problems import Problem
from ai_platform_engineering.skills_middleware.rest.etags import etag
from ai_platform_engineering.skills_middleware.scanning import Finding, Severity
from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent, SourceKind, Visibility
from ai_platform_engineering.skills_middleware.tags import tags_of
from ai_platform_engineering.skills_middleware.view import Overridden, SkillView


class OverriddenView(BaseModel):
    """A skill of the same name that is not in effect, and why."""

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
    etag: str = Field(description="The value for the header If-Match of a change.")
    added_by: str | None
    added_at: datetime | None
    updated_by: str | None
    updated_at: datetime | None
    in_effect: bool = Field(description="False where another skill of the same name overrides this one.")
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
    def all_of(cls, problems: Iterable[Problem]) -> list[Self]:
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
    """A skill after a change, and what its author should know of it."""

    warnings: list[ProblemView]
    findings: list[FindingView]


class ListMeta(BaseModel):
    total: int = Field(description="Skills that match, on all pages.")
    limit: int
    offset: int
    generation: int = Field(description="Grows with every change of the catalog.")


class SkillList(BaseModel):
    skills: list[ListedSkill]
    meta: ListMeta


class SkillBody(BaseModel):
    """A skill as JSON."""

    model_config = ConfigDict(extra="forbid")

    content: str = Field(description="The text of SKILL.md.")
    files: dict[str, str] = Field({}, description="The text of each file beside SKILL.md, by path.")
    visibility: Visibility | None = Field(None, description="global where it is left out.")
    team: str | None = Field(None, max_length=200, description="The team of a team skill.")


def summary(model: type[Model], skill: Skill, view: SkillView, **more: Any) -> Model:
    """The skill as `model`, whose members beyond those of a summary are in `more`."""
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
        tags=list(tags_of(skill)),
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
