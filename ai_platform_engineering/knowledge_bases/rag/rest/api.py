"""The routes of the REST API, their requests and their error statuses. `KnowledgeBase` does the work."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Final, get_args

from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from ai_platform_engineering.identity.access import sees_everything
from ai_platform_engineering.identity.principal import caller_in
from ai_platform_engineering.installation import product_version
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import DatasourceTakenError
from ai_platform_engineering.knowledge_bases.rag.jobs import (
    DatasourceBusyError,
    IngestJob,
    IngestJobList,
    IngestRequest,
    TooManyJobsError,
    UnknownJobError,
)
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import (
    DEFAULT_RESULTS,
    MAX_RESULTS,
    KnowledgeBase,
    WrongSettingError,
)
from ai_platform_engineering.knowledge_bases.rag.names import (
    DATASOURCE_NAME,
    UnknownDatasourceError,
    UnknownDocumentError,
)
from ai_platform_engineering.knowledge_bases.rag.readers.reading import MediaType, media_type_of
from ai_platform_engineering.knowledge_bases.rag.results import Filters, SearchResults
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStoreError
from ai_platform_engineering.knowledge_bases.rag.views import DatasourcesView, DocumentView, UploadResult
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.rest.asgi import BodyLimit, BodySize, request_limit
from ai_platform_engineering.utils.rest.page import api_page
from ai_platform_engineering.utils.rest.problems import Statuses, handle_problems, responses

_KINDS: Final = get_args(MediaType)
_DESCRIPTION: Final = "Search and store documents, and ingest websites. Errors are problem JSON."


class NotAdminError(ReadableError):
    def __init__(self) -> None:
        super().__init__("Only an admin may change the knowledge base: use a key or token with that role.")


class UnsupportedKindError(ReadableError):
    def __init__(self, declared: str | None, kinds: Sequence[str]) -> None:
        given = f"{declared!r} is not a kind of document" if declared else "The kind of document is not known"
        super().__init__(f"{given} that can be read; send one of {', '.join(kinds)} as Content-Type.")


STATUSES: Final[Statuses] = {
    UnknownDatasourceError: HTTPStatus.NOT_FOUND,
    UnknownDocumentError: HTTPStatus.NOT_FOUND,
    UnknownJobError: HTTPStatus.NOT_FOUND,
    NotAdminError: HTTPStatus.FORBIDDEN,
    DatasourceBusyError: HTTPStatus.CONFLICT,
    UnsupportedKindError: HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    TooManyJobsError: HTTPStatus.TOO_MANY_REQUESTS,
    DatasourceTakenError: HTTPStatus.CONFLICT,
    WrongSettingError: HTTPStatus.SERVICE_UNAVAILABLE,
    KnowledgeStoreError: HTTPStatus.SERVICE_UNAVAILABLE,
    EmbeddingsError: HTTPStatus.SERVICE_UNAVAILABLE,
}


def create_rest(knowledge_base: KnowledgeBase) -> FastAPI:
    """The app to mount at /rag."""
    app = FastAPI(
        title="Knowledge base",
        description=_DESCRIPTION,
        version=product_version(),
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.knowledge_base = knowledge_base
    settings = knowledge_base.settings
    # The body of a PUT is a document, which may be as large as a web page.
    documents = {"PUT": BodySize(settings.fetch_url_max_bytes, "FETCH_URL_MAX_BYTES")}
    app.add_middleware(BodyLimit, limit=request_limit(settings), by_method=documents)
    app.include_router(router)
    app.add_api_route("/docs", _docs, include_in_schema=False)
    handle_problems(app, STATUSES, "/rag/docs")
    return app


async def _docs(request: Request) -> HTMLResponse:
    return HTMLResponse(api_page(request.app.openapi(), request.scope.get("root_path", "")))


def _knowledge_base(request: Request) -> KnowledgeBase:
    found = request.app.state.knowledge_base
    assert isinstance(found, KnowledgeBase)  # noqa: S101
    return found


def _check_may_change(request: Request) -> None:
    if not sees_everything(caller_in(request.scope.get("state"))):
        raise NotAdminError


Base = Annotated[KnowledgeBase, Depends(_knowledge_base)]
MAY_CHANGE: Final = [Depends(_check_may_change)]
DatasourceName = Annotated[str, Path(pattern=DATASOURCE_NAME, description="Letters, digits, dots, dashes, underscores")]
DocumentPath = Annotated[
    str, Path(min_length=1, max_length=1000, description="Its path in the datasource: `guides/deploy.md`.")
]
Link = Annotated[
    str | None, Query(pattern="^https?://", max_length=2000, description="Where people read it; the path if omitted.")
]


class SearchRequest(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="A question, or the words a document would use.")
    limit: int = Field(DEFAULT_RESULTS, ge=1, le=MAX_RESULTS)
    filters: Filters | None = None
    datasource: str | None = Field(None, description="Its name; all are searched if omitted.")


router = APIRouter(prefix="/v1")


@router.post("/search", summary="Search", responses=responses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE))
async def search(body: SearchRequest, base: Base) -> SearchResults:
    """The best matches by keywords and by meaning. `note` says when nothing was found."""
    return await base.search(body.query, body.limit, body.filters, body.datasource)


@router.get("/datasources", summary="List datasources", responses=responses(HTTPStatus.SERVICE_UNAVAILABLE))
async def list_datasources(base: Base) -> DatasourcesView:
    return DatasourcesView.of(await base.datasources())


@router.delete(
    "/datasources/{name}",
    summary="Remove a datasource",
    dependencies=MAY_CHANGE,
    status_code=HTTPStatus.NO_CONTENT,
    responses=responses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def remove_datasource(name: str, base: Base) -> None:
    """Its documents are removed as well."""
    await base.remove_datasource(name)


@router.get(
    "/documents/{document_id:path}",
    summary="Read a document",
    responses=responses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def read_document(document_id: str, base: Base) -> DocumentView:
    """The whole document as Markdown."""
    return DocumentView.of(await base.fetch_document(document_id))


@router.put(
    "/datasources/{name}/documents/{path:path}",
    summary="Store a document",
    dependencies=MAY_CHANGE,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _KINDS},
        }
    },
    responses={
        HTTPStatus.CREATED.value: {"model": UploadResult, "description": "The document is new."},
        **responses(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, HTTPStatus.SERVICE_UNAVAILABLE
        ),
    },
)
async def store_document(
    name: DatasourceName,
    path: DocumentPath,
    request: Request,
    response: Response,
    base: Base,
    link: Link = None,
) -> UploadResult:
    """The body is the file, Content-Type its kind. A document with the same path is replaced."""
    declared = request.headers.get("content-type")
    media_type = media_type_of(path, declared)
    if media_type is None:
        raise UnsupportedKindError(declared, _KINDS)
    stored = await base.store_document(name, path, await request.body(), media_type, link)
    if stored.state == "added":
        response.status_code = HTTPStatus.CREATED
    return stored


@router.delete(
    "/datasources/{name}/documents/{path:path}",
    summary="Remove a document",
    dependencies=MAY_CHANGE,
    status_code=HTTPStatus.NO_CONTENT,
    responses=responses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def remove_document(name: str, path: str, base: Base) -> None:
    await base.remove_document(name, path)


@router.post(
    "/ingest",
    summary="Ingest a page, a site or a sitemap",
    dependencies=MAY_CHANGE,
    status_code=HTTPStatus.ACCEPTED,
    responses=responses(HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def start_ingest(body: IngestRequest, request: Request, response: Response, base: Base) -> IngestJob:
    """Runs in the background. The Location header of the response is the URL of the job."""
    job = await base.start_ingest(body)
    response.headers["Location"] = f"{request.scope.get('root_path', '')}/v1/ingest/{job.job}"
    return job


@router.get("/ingest", summary="List ingest jobs")
async def list_ingest_jobs(base: Base) -> IngestJobList:
    return IngestJobList(jobs=base.ingest_jobs())


@router.get("/ingest/{job}", summary="Get an ingest job", responses=responses(HTTPStatus.NOT_FOUND))
async def ingest_job(job: str, base: Base) -> IngestJob:
    return base.ingest_job(job)


@router.delete(
    "/ingest/{job}",
    summary="Cancel an ingest",
    dependencies=MAY_CHANGE,
    responses=responses(HTTPStatus.NOT_FOUND),
)
async def cancel_ingest(job: str, base: Base) -> IngestJob:
    """Documents that were stored stay; the same request continues from there. A job that has ended does not change."""
    return await base.cancel_ingest(job)
