"""What went wrong, as problem JSON (RFC 9457): a status and one sentence."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import DatasourceTakenError
from ai_platform_engineering.knowledge_bases.rag.jobs import DatasourceBusyError, TooManyJobsError, UnknownJobError
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import WrongSettingError
from ai_platform_engineering.knowledge_bases.rag.names import UnknownDatasourceError, UnknownDocumentError
from ai_platform_engineering.knowledge_bases.rag.stores.store import StoreError
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

MEDIA_TYPE: Final = "application/problem+json"
_UNEXPECTED: Final = "Something unexpected went wrong; the log of the server has more."


class Problem(BaseModel):
    """`detail` says what was wrong and the way out."""

    title: str
    status: int
    detail: str


class UnsupportedKindError(ReadableError):
    def __init__(self, declared: str | None, kinds: Sequence[str]) -> None:
        given = f"{declared!r} is not a kind of document" if declared else "The kind of document is not known"
        super().__init__(f"{given} that can be read; send one of {', '.join(kinds)} as Content-Type.")


_STATUS: Final[dict[type[ReadableError], HTTPStatus]] = {
    UnknownDatasourceError: HTTPStatus.NOT_FOUND,
    UnknownDocumentError: HTTPStatus.NOT_FOUND,
    UnknownJobError: HTTPStatus.NOT_FOUND,
    DatasourceBusyError: HTTPStatus.CONFLICT,
    UnsupportedKindError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    TooManyJobsError: HTTPStatus.TOO_MANY_REQUESTS,
    DatasourceTakenError: HTTPStatus.CONFLICT,
    WrongSettingError: HTTPStatus.SERVICE_UNAVAILABLE,
    StoreError: HTTPStatus.SERVICE_UNAVAILABLE,
    EmbeddingsError: HTTPStatus.SERVICE_UNAVAILABLE,
}
_SENTENCES: Final[Mapping[int, str]] = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address; the API is described at /rag/docs.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address takes other methods, which the header Allow names.",
    HTTPStatus.BAD_REQUEST: "The body is not the JSON that is expected here; the API is described at /rag/docs.",
}


def responses(*statuses: HTTPStatus) -> dict[int | str, dict[str, Any]]:
    """For the description of a route: which problems it may answer with."""
    return {
        int(status): {"model": Problem, "description": status.phrase, "content": {MEDIA_TYPE: {}}}
        for status in statuses
    }


def handle_problems(app: FastAPI) -> None:
    app.add_exception_handler(ReadableError, _readable)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(Exception, _unexpected)


def status_of(error: ReadableError) -> HTTPStatus:
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), HTTPStatus.UNPROCESSABLE_ENTITY)


def _answer(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    problem = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail)
    return JSONResponse(problem.model_dump(), status, headers, MEDIA_TYPE)


async def _readable(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, ReadableError):
        raise TypeError(error)
    return _answer(status_of(error), str(error))


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, RequestValidationError):
        raise TypeError(error)
    return _answer(HTTPStatus.UNPROCESSABLE_ENTITY, "; ".join(map(_told, error.errors())) + ".")


async def _refused(_request: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, HTTPException):
        raise TypeError(error)
    return _answer(error.status_code, _SENTENCES.get(error.status_code, error.detail), error.headers)


async def _unexpected(_request: Request, _error: Exception) -> JSONResponse:
    return _answer(HTTPStatus.INTERNAL_SERVER_ERROR, _UNEXPECTED)


def _told(detail: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in detail["loc"] if part != "body")
    return f"{where or 'the body'}: {detail['msg']}"
