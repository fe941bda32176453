"""The errors of the skills API and their HTTP statuses."""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from ai_platform_engineering.skills_middleware.mutations import NotAllowedError, NotStoredError, SkillsDisabledError
from ai_platform_engineering.skills_middleware.rest.views import ProblemView, etag
from ai_platform_engineering.skills_middleware.skill import InvalidSkillError
from ai_platform_engineering.skills_middleware.sources.crawling import CrawlFailedError, CrawlRefusedError
from ai_platform_engineering.skills_middleware.sources.git_address import GitAddressError
from ai_platform_engineering.skills_middleware.sources.source import SkillGoneError, SourceUnavailableError
from ai_platform_engineering.skills_middleware.store.store import (
    AlreadyExistsError,
    ChangedMeanwhileError,
    NotFoundError,
    SkillStoreError,
)
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.rest.problems import (
    MEDIA_TYPE,
    Problem,
    Statuses,
    documented,
    problem_response,
    responses,
)


class UnknownSkillError(ReadableError):
    def __init__(self, name: str, near: Iterable[str] = ()) -> None:
        meant = f"; did you mean {' or '.join(near)}?" if (near := list(near)) else ". GET /skills lists them."
        super().__init__(f"There is no skill {name!r}{meant}")


class UnknownFileError(ReadableError):
    def __init__(self, name: str, path: str) -> None:
        super().__init__(f"The skill {name} has no file {path!r}. GET /skills/{name} lists its files.")


class UnsupportedBodyError(ReadableError):
    def __init__(self, declared: str, kinds: Iterable[str]) -> None:
        given = (
            f"A body with Content-Type {declared!r} is not supported"
            if declared
            else "The header Content-Type is missing"
        )
        super().__init__(f"{given}; send one of {', '.join(kinds)} as Content-Type.")


class PreconditionMissingError(ReadableError):
    def __init__(self, wanted: str) -> None:
        super().__init__(f"A change must name the version that it changes: send the header {wanted}.")


class PreconditionFailedError(ReadableError):
    """A precondition of the request does not hold. `digest` is the digest of the stored skill."""

    def __init__(self, sentence: str, digest: str) -> None:
        self.digest = digest
        super().__init__(sentence)


STATUSES: Final[Statuses] = {
    UnknownSkillError: HTTPStatus.NOT_FOUND,
    UnknownFileError: HTTPStatus.NOT_FOUND,
    NotAllowedError: HTTPStatus.FORBIDDEN,
    NotStoredError: HTTPStatus.CONFLICT,
    UnsupportedBodyError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    PreconditionMissingError: HTTPStatus.PRECONDITION_REQUIRED,
    NotFoundError: HTTPStatus.NOT_FOUND,
    CrawlFailedError: HTTPStatus.BAD_GATEWAY,
    SkillsDisabledError: HTTPStatus.SERVICE_UNAVAILABLE,
    SourceUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    SkillStoreError: HTTPStatus.SERVICE_UNAVAILABLE,
}


class Refusal(BaseModel):
    """The response of the checks in front of the API: host, origin, key and token."""

    error: str
    message: str


class InvalidSkill(Problem):
    """`problems` has every problem of an invalid skill; it is empty if the request itself is invalid."""

    problems: list[ProblemView] = Field(default_factory=list)


def answers(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """The error responses of a route for OpenAPI: its own `statuses`, and those of every route."""
    both = {"application/json": {}, MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {
        **responses(*statuses),
        HTTPStatus.UNAUTHORIZED.value: {"model": Refusal, "description": "The key or token is missing or refused"},
        HTTPStatus.FORBIDDEN.value: {"model": Refusal, "description": "Not allowed for this caller", "content": both},
        HTTPStatus.MISDIRECTED_REQUEST.value: {"model": Refusal, "description": "The host name is not the server's"},
        HTTPStatus.UNPROCESSABLE_ENTITY.value: documented(HTTPStatus.UNPROCESSABLE_ENTITY, InvalidSkill),
        HTTPStatus.SERVICE_UNAVAILABLE.value: {
            "model": Refusal,
            "description": "The store, a source or the token issuer does not answer",
            "content": both,
        },
    }


def handle_skill_problems(app: FastAPI) -> None:
    """Register handlers for errors whose response has more than a status and the error's text."""
    app.add_exception_handler(InvalidSkillError, _invalid)
    app.add_exception_handler(SkillGoneError, _gone)
    app.add_exception_handler(AlreadyExistsError, _exists)
    app.add_exception_handler(ChangedMeanwhileError, _changed)
    app.add_exception_handler(PreconditionFailedError, _changed)
    app.add_exception_handler(CrawlRefusedError, _not_crawled)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    found = error.problems if isinstance(error, InvalidSkillError) else ()
    sentence = "The skill cannot be used. " + "; ".join(map(str, found)) + "."
    listed = [each.model_dump() for each in ProblemView.all_of(found)]
    return problem_response(HTTPStatus.UNPROCESSABLE_ENTITY, sentence, problems=listed)


async def _gone(_request: Request, error: Exception) -> JSONResponse:
    return problem_response(HTTPStatus.NOT_FOUND, f"The skill {error} has just been removed or changed.")


async def _exists(_request: Request, error: Exception) -> JSONResponse:
    sentence = f"{error} Change it with PUT, or give the new one another name."
    return problem_response(HTTPStatus.CONFLICT, sentence, _current_tag(error))


async def _changed(_request: Request, error: Exception) -> JSONResponse:
    sentence = f"{error} The header ETag has its current version: read the skill, and send the change again."
    return problem_response(HTTPStatus.PRECONDITION_FAILED, sentence, _current_tag(error))


async def _not_crawled(_request: Request, error: Exception) -> JSONResponse:
    is_malformed = isinstance(error.__cause__, GitAddressError)
    return problem_response(HTTPStatus.UNPROCESSABLE_ENTITY if is_malformed else HTTPStatus.FORBIDDEN, str(error))


def _current_tag(error: Exception) -> dict[str, str]:
    if isinstance(error, AlreadyExistsError | ChangedMeanwhileError | PreconditionFailedError):
        return {"ETag": etag(error.digest)}
    raise TypeError(error)
