"""GET routes: the list of skills, one skill, one file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import BaseModel, Field

from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.rest.dependencies import (
    Catalog,
    IncludeContent,
    Name,
    RequestedSkillAccess,
    Selected,
    VerifiedCaller,
)
from ai_platform_engineering.skills_middleware.rest.problems import UnknownFileError, UnknownSkillError, answers
from ai_platform_engineering.skills_middleware.rest.views import (
    ListedSkill,
    ListMeta,
    SkillDetail,
    SkillList,
    body_etag,
    detail,
    etag,
    etag_matches,
    summary,
)
from ai_platform_engineering.skills_middleware.skill import DOCUMENT, Skill, SourceKind, Visibility
from ai_platform_engineering.skills_middleware.sources.source import SkillGoneError
from ai_platform_engineering.skills_middleware.view import SkillView

MAX_PAGE: Final = 200
PAGE: Final = 50
# The response depends on the caller.
CACHING: Final = {"Cache-Control": "private, no-cache", "Vary": "Authorization"}
_NOT_MODIFIED: Final[dict[int | str, dict[str, Any]]] = {
    HTTPStatus.NOT_MODIFIED.value: {"description": "The version in the header If-None-Match is current"}
}

IfNoneMatch = Annotated[str | None, Header(alias="If-None-Match", description="The ETag of an earlier response.")]

router = APIRouter()


class ListQuery(BaseModel):
    q: str = Field("", max_length=500, description="Words to search for; the best matches come first.")
    source: SourceKind | None = Field(None, description="Only skills of this kind of source.")
    visibility: Visibility | None = Field(None, description="Only skills with this visibility.")
    tag: str | None = Field(None, max_length=100, description="Only skills with this tag.")
    limit: int = Field(PAGE, ge=1, le=MAX_PAGE)
    offset: int = Field(0, ge=0)
    include_content: bool = Field(False, description="Whether to include the text of each SKILL.md.")

    def matches(self, skill: Skill) -> bool:
        return (
            (self.source is None or skill.provenance.kind == self.source)
            and (self.visibility is None or skill.access.visibility == self.visibility)
            and (self.tag is None or self.tag.strip().lower() in skill.tags)
        )


@router.get("/skills", summary="List skills", response_model=SkillList, responses={**answers(), **_NOT_MODIFIED})
async def list_skills(
    query: Annotated[ListQuery, Query()],
    catalog: Catalog,
    caller: VerifiedCaller,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The skills in effect for the caller, by name."""
    await catalog.reload_changed()
    view, generation = catalog.view(caller), catalog.generation
    found = await asyncio.to_thread(view.search, query.q) if query.q.strip() else list(view.skills.values())
    matching = [skill for skill in found if query.matches(skill)]
    page = matching[query.offset : query.offset + query.limit]
    body = SkillList(
        skills=[await _listed(catalog, view, skill, query.include_content) for skill in page],
        meta=ListMeta(total=len(matching), limit=query.limit, offset=query.offset, generation=generation),
    )
    return conditional(body, None, if_none_match)


@router.get(
    "/skills/{name}",
    summary="Read a skill",
    response_model=SkillDetail,
    responses={**answers(HTTPStatus.NOT_FOUND), **_NOT_MODIFIED},
)
async def read_skill(
    name: Name,
    catalog: Catalog,
    caller: VerifiedCaller,
    selected: Selected,
    include_content: IncludeContent = False,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The skill in effect for the caller, or the one that `visibility` and `team` select."""
    view, skill = await find(catalog, caller, name, selected)
    content = await catalog.content(skill)
    return conditional(detail(skill, view, content, with_files=include_content), etag(skill.digest), if_none_match)


@router.get(
    "/skills/{name}/files/{path:path}",
    summary="Read a file of a skill",
    response_class=Response,
    responses={
        HTTPStatus.OK.value: {"content": {"text/plain": {"schema": {"type": "string"}}}},
        **answers(HTTPStatus.NOT_FOUND),
        **_NOT_MODIFIED,
    },
)
async def read_file(
    name: Name,
    path: Annotated[str, Path(min_length=1, max_length=200, description="The path of a file, or SKILL.md.")],
    catalog: Catalog,
    caller: VerifiedCaller,
    selected: Selected,
    if_none_match: IfNoneMatch = None,
) -> Response:
    """The text of one file, as plain text for every file extension."""
    _, skill = await find(catalog, caller, name, selected)
    content = await catalog.content(skill)
    text = content.document if path == DOCUMENT else content.files.get(path)
    if text is None:
        raise UnknownFileError(name, path)
    headers = {**CACHING, "ETag": body_etag(text.encode()), "X-Content-Type-Options": "nosniff"}
    if if_none_match is not None and etag_matches(if_none_match, headers["ETag"]):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(text, headers=headers, media_type="text/plain; charset=utf-8")


async def find(
    catalog: SkillCatalog, caller: Principal, name: str, selected: RequestedSkillAccess
) -> tuple[SkillView, Skill]:
    """The caller's view, and the skill that a request selects in it; raises `UnknownSkillError`."""
    wanted = selected.resolve(caller)
    await catalog.reload_changed()
    view = catalog.view(caller)
    for skill in entries(view, name):
        if wanted in {None, skill.access}:
            return view, skill
    raise UnknownSkillError(name, view.near(name))


def entries(view: SkillView, name: str) -> Iterable[Skill]:
    """All skills of a name that the caller may see: the one in effect, then the overridden ones, latest first."""
    if name in view.skills:
        yield view.skills[name]
        yield from (hidden.skill for hidden in reversed(view.overridden.get(name, ())))


def conditional(body: BaseModel, tag: str | None, known: str | None) -> Response:
    """The body, or 304 if the client has the current version. Without a tag, the digest of the body is used."""
    encoded = body.model_dump_json().encode()
    tag = tag or body_etag(encoded)
    headers = {**CACHING, "ETag": tag}
    if known is not None and etag_matches(known, tag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(encoded, headers=headers, media_type="application/json")


async def _listed(catalog: SkillCatalog, view: SkillView, skill: Skill, include_content: bool) -> ListedSkill:
    document = None
    if include_content:
        try:
            document = (await catalog.content(skill)).document
        except SkillGoneError:
            # The skill was removed after the list was built; the next request does not list it.
            document = None
    return summary(ListedSkill, skill, view, document=document)
