"""Routes that validate a skill or scan its text, without storing it."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field

from ai_platform_engineering.skills_middleware.checks import CheckedSkill
from ai_platform_engineering.skills_middleware.rest.bodies import REQUEST_BODY, documents, read_submission
from ai_platform_engineering.skills_middleware.rest.problems import answers
from ai_platform_engineering.skills_middleware.rest.views import FindingView, ProblemView
from ai_platform_engineering.skills_middleware.scanning import scan
from ai_platform_engineering.skills_middleware.skill import InvalidSkillError, SkillProblem


class ValidSkill(BaseModel):
    """A skill that passed all checks."""

    name: str
    description: str
    license: str | None
    compatibility: str | None
    metadata: dict[str, str]
    files: list[str]
    size: int


class Validation(BaseModel):
    valid: bool
    problems: list[ProblemView] = Field(description="The reasons why the skill would be refused.")
    warnings: list[ProblemView] = Field(description="Hints for the author. They do not prevent storing the skill.")
    findings: list[FindingView]
    skill: ValidSkill | None


class ScanRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str | None = Field(None, max_length=200, description="The name of the skill, for the caller's own records.")
    content: str = Field(description="The text of SKILL.md.")
    files: dict[str, str] = Field({}, description="The text of each file beside SKILL.md, by path.")


class Scan(BaseModel):
    name: str | None
    passed: bool = Field(description="False if a finding is critical.")
    findings: list[FindingView]


router = APIRouter()


@router.post(
    "/skills/validate",
    summary="Validate a skill",
    openapi_extra=REQUEST_BODY,
    responses=answers(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
)
async def validate(request: Request) -> Validation:
    """Returns every problem of a skill, without storing it."""
    try:
        checked = await (await read_submission(request)).checked()
    except InvalidSkillError as error:
        return _validation(error.problems, None)
    return _validation((), checked)


@router.post(
    "/skills/scan-content",
    summary="Scan the text of a skill",
    responses=answers(HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
)
def scan_content(body: ScanRequest) -> Scan:
    """Scans a skill for suspicious content, without storing it."""
    findings = scan(documents(body.content, body.files))
    passed = all(finding.severity != "critical" for finding in findings)
    return Scan(name=body.name, passed=passed, findings=FindingView.all_of(findings))


def _validation(problems: tuple[SkillProblem, ...], checked: CheckedSkill | None) -> Validation:
    document = checked.document if checked is not None else None
    return Validation(
        valid=checked is not None,
        problems=ProblemView.all_of(problems),
        warnings=ProblemView.all_of(document.warnings if document is not None else ()),
        findings=FindingView.all_of(checked.findings if checked is not None else ()),
        skill=_valid(checked) if checked is not None else None,
    )


def _valid(checked: CheckedSkill) -> ValidSkill:
    document = checked.document
    return ValidSkill(
        name=document.name,
        description=document.description,
        license=document.license,
        compatibility=document.compatibility,
        metadata=dict(document.metadata),
        files=list(checked.files),
        size=checked.size,
    )
