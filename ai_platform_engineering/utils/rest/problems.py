"""Errors as problem JSON (RFC 9457): a status and one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from ai_platform_engineering.utils.errors import ReadableError

MEDIA_TYPE: Final = "application/problem+json"
_UNEXPECTED: Final = "Something unexpected went wrong; the log of the server has more."


class Problem(BaseModel):
    """`detail` says what is wrong and what to do."""

    title: str
    status: int
    detail: str


Statuses = Mapping[type[Exception], HTTPStatus]


def responses(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """The problems that a route may respond with, for its OpenAPI description."""
    return {int(status): documented(status) for status in statuses}


def documented(status: HTTPStatus, model: type[BaseModel] = Problem) -> dict[str, Any]:
    return {"model": model, "description": status.phrase, "content": {MEDIA_TYPE: {}}}


def handle_problems(app: FastAPI, statuses: Statuses, docs: str) -> None:
    """Convert errors to problems: an error of a type in `statuses` gets its status, any other `ReadableError` 422.

    The texts of these errors are shown. `docs` is the address of the API's description.
    """
    sentences = {
        HTTPStatus.NOT_FOUND: f"There is nothing at this address; the API is described at {docs}.",
        HTTPStatus.METHOD_NOT_ALLOWED: "This address allows other methods; see the header Allow.",
        HTTPStatus.BAD_REQUEST: f"The body is not the expected JSON; the API is described at {docs}.",
    }

    async def readable(_request: Request, error: Exception) -> JSONResponse:
        return problem_response(status_of(error, statuses), str(error))

    async def refused(_request: Request, error: Exception) -> JSONResponse:
        if not isinstance(error, HTTPException):
            raise TypeError(error)
        status = HTTPStatus(error.status_code)
        return problem_response(status, sentences.get(status, error.detail), error.headers)

    describe = app.openapi
    app.openapi = lambda: _with_problem_schemas(describe())  # type: ignore[method-assign]
    app.add_exception_handler(ReadableError, readable)
    for kind in statuses:
        app.add_exception_handler(kind, readable)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, _unexpected)


def status_of(error: Exception, statuses: Statuses) -> HTTPStatus:
    kinds = type(error).__mro__
    return next((statuses[kind] for kind in kinds if kind in statuses), HTTPStatus.UNPROCESSABLE_ENTITY)


def problem_response(
    status: HTTPStatus, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> JSONResponse:
    """`more` are additional members of the problem."""
    problem = Problem(title=status.phrase, status=status, detail=detail)
    return JSONResponse(problem.model_dump() | more, status, headers, MEDIA_TYPE)


def sentence_of(error: RequestValidationError) -> str:
    return "; ".join(map(_described, error.errors())) + "."


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise TypeError(error)
    return problem_response(HTTPStatus.UNPROCESSABLE_ENTITY, sentence_of(error))


async def _unexpected(_request: Request, _error: Exception) -> JSONResponse:
    return problem_response(HTTPStatus.INTERNAL_SERVER_ERROR, _UNEXPECTED)


def _with_problem_schemas(api: dict[str, Any]) -> dict[str, Any]:
    """Move the schemas of problems to their media type; FastAPI describes every model as application/json."""
    operations = (operation for path in api.get("paths", {}).values() for operation in path.values())
    for response in (each for operation in operations for each in operation["responses"].values()):
        content = response.get("content", {})
        if content.get(MEDIA_TYPE) == {} and "application/json" in content:
            content[MEDIA_TYPE] = content.pop("application/json")
    return api


def _described(detail: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in detail["loc"] if part != "body")
    return f"{where or 'the body'}: {detail['msg']}"
