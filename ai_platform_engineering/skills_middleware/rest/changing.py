"""POST, PUT and DELETE of skills. A change names the version that it changes (optimistic concurrency)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Header, Request, Response

from ai_platform_engineering.skills_middleware.checks import CheckedSkill
from ai_platform_engineering.skills_middleware.mutations import SkillChanges
from ai_platform_engineering.skills_middleware.rest.bodies import REQUEST_BODY, Submission, read_submission
from ai_platform_engineering.skills_middleware.rest.dependencies import Changes, Name, RequestedSkillAccess, Selected
from ai_platform_engineering.skills_middleware.rest.problems import (
    PreconditionFailedError,
    PreconditionMissingError,
    answers,
)
from ai_platform_engineering.skills_middleware.rest.reading import find
from ai_platform_engineering.skills_middleware.rest.views import (
    FindingView,
    ProblemView,
    StoredSkill,
    etag,
    etag_matches,
    is_any_etag,
    summary,
)
from ai_platform_engineering.skills_middleware.skill import GLOBAL, Access, Skill
from ai_platform_engineering.skills_middleware.store.store import (
    AlreadyExistsError,
    ChangedMeanwhileError,
    SkillKey,
)

_WANTED: Final = 'If-Match with the ETag of the skill, for example If-Match: "1f0c..."'

IfMatch = Annotated[str | None, Header(alias="If-Match", description="The ETag of the skill; `*` for any version.")]
IfAbsent = Annotated[str | None, Header(alias="If-None-Match", description="`*` creates the skill.")]

router = APIRouter()


@router.post(
    "/skills",
    summary="Create a skill",
    status_code=HTTPStatus.CREATED,
    openapi_extra=REQUEST_BODY,
    responses=answers(HTTPStatus.CONFLICT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE),
)
async def create_skill(
    request: Request,
    response: Response,
    changes: Changes,
    selected: Selected,
) -> StoredSkill:
    """From JSON, or from a zip or tar archive that contains SKILL.md. For an archive, `visibility` and `team` are query
    parameters. The skill overrides a skill of the same name from another source."""
    submission = await read_submission(request)
    access = _access(submission, selected, changes)
    changes.check_access(access)
    return await _create(request, response, changes, await submission.checked(), access)


@router.put(
    "/skills/{name}",
    summary="Replace a skill",
    openapi_extra=REQUEST_BODY,
    responses={
        HTTPStatus.CREATED.value: {"model": StoredSkill, "description": "The skill was created"},
        **answers(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            HTTPStatus.PRECONDITION_FAILED,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            HTTPStatus.PRECONDITION_REQUIRED,
        ),
    },
)
async def replace_skill(
    name: Name,
    request: Request,
    response: Response,
    changes: Changes,
    selected: Selected,
    if_match: IfMatch = None,
    if_none_match: IfAbsent = None,
) -> StoredSkill:
    """The query parameters select the skill; `visibility` and `team` in the body change its access."""
    submission = await read_submission(request)
    if if_match is None and if_none_match is not None and is_any_etag(if_none_match):
        access = _access(submission, selected, changes)
        changes.check_access(access)
        checked = await submission.checked(name)
        try:
            return await _create(request, response, changes, checked, access)
        except AlreadyExistsError as error:
            raise PreconditionFailedError(str(error), error.digest) from error
    _, skill = await find(changes.catalog, changes.caller, name, selected)
    changes.check(skill)
    digest = _expected(skill, if_match, f"{_WANTED}, or If-None-Match: * to create it")
    access = submission.access.resolve(changes.caller) or skill.access
    changes.check_access(access)
    checked = await submission.checked(name)
    return _answer(response, changes, await changes.replace(skill, checked, access, digest), checked)


@router.delete(
    "/skills/{name}",
    summary="Delete a skill",
    status_code=HTTPStatus.NO_CONTENT,
    responses=answers(
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.PRECONDITION_FAILED,
        HTTPStatus.PRECONDITION_REQUIRED,
    ),
)
async def delete_skill(
    name: Name,
    changes: Changes,
    selected: Selected,
    if_match: IfMatch = None,
) -> None:
    """If the skill overrides another one of the same name, that one is in effect again."""
    _, skill = await find(changes.catalog, changes.caller, name, selected)
    changes.check(skill)
    await changes.delete(skill, _expected(skill, if_match, f"{_WANTED}, or If-Match: * for any version"))


def _access(submission: Submission, selected: RequestedSkillAccess, changes: SkillChanges) -> Access:
    """The access of a new skill: from the body, else from the query, else global."""
    return submission.access.resolve(changes.caller) or selected.resolve(changes.caller) or GLOBAL


def _expected(skill: Skill, if_match: str | None, wanted: str) -> str | None:
    """The digest that the stored skill must have; None accepts any."""
    if if_match is None:
        raise PreconditionMissingError(wanted)
    if is_any_etag(if_match):
        return None
    if not etag_matches(if_match, etag(skill.digest)):
        raise ChangedMeanwhileError(SkillKey.of(skill), skill.digest)
    return skill.digest


async def _create(
    request: Request, response: Response, changes: SkillChanges, checked: CheckedSkill, access: Access
) -> StoredSkill:
    stored = await changes.create(checked, access)
    picked = {"visibility": access.visibility} | ({"team": access.holder} if access.visibility == "team" else {})
    query = f"?{urlencode(picked)}" if access.visibility != "global" else ""
    response.headers["Location"] = f"{request.scope.get('root_path', '')}/skills/{stored.name}{query}"
    response.status_code = HTTPStatus.CREATED
    return _answer(response, changes, stored, checked)


def _answer(response: Response, changes: SkillChanges, stored: Skill, checked: CheckedSkill) -> StoredSkill:
    response.headers["ETag"] = etag(stored.digest)
    return summary(
        StoredSkill,
        stored,
        changes.catalog.view(changes.caller),
        warnings=ProblemView.all_of(checked.document.warnings),
        findings=FindingView.all_of(checked.findings),
    )
