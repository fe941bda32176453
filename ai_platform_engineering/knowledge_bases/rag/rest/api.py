"""The REST API: routes, and what they take and give. What is done is done by the knowledge base."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Final, get_args

from fastapi import APIRouter, Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from ai_platform_engineering.knowledge_bases.rag.jobs import IngestJob, IngestJobList, IngestOrder
from ai_platform_engineering.knowledge_bases.rag.knowledge_base import MAX_RESULTS, USUAL_RESULTS, KnowledgeBase
from ai_platform_engineering.knowledge_bases.rag.names import DATASOURCE_NAME
from ai_platform_engineering.knowledge_bases.rag.readers.reading import MediaType, media_type_of
from ai_platform_engineering.knowledge_bases.rag.rest.problems import STATUSES, UnsupportedKindError
from ai_platform_engineering.knowledge_bases.rag.results import Filters, SearchResults
from ai_platform_engineering.knowledge_bases.rag.views import DatasourcesView, DocumentView, KeptView
from ai_platform_engineering.utils.rest.body_limit import BodyLimit, Limit, request_limit
from ai_platform_engineering.utils.rest.page import api_page
from ai_platform_engineering.utils.rest.problems import handle_problems, responses
from ai_platform_engineering.version import product_version

_KINDS: Final = get_args(MediaType)
_DESCRIPTION: Final = "Search documents, keep them, and bring in those of a site. Errors are problem JSON."


def create_rest(knowledge_base: KnowledgeBase) -> FastAPI:
    """The app, to be mounted at /rag."""
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
    # What is uploaded with PUT is a document and may be as large as a web page.
    documents = {"PUT": Limit(settings.fetch_url_max_bytes, "FETCH_URL_MAX_BYTES")}
    app.add_middleware(BodyLimit, limit=request_limit(settings), by_method=documents)
    app.include_router(router)
    app.add_api_route("/docs", _docs, include_in_schema=False)
    handle_problems(app, STATUSES, "/rag/docs")
    return app


async def _docs(request: Request) -> HTMLResponse:
    return HTMLResponse(api_page(request.app.openapi(), request.scope.get("root_path", "")))


def _of_the_app(request: Request) -> KnowledgeBase:
    found = request.app.state.knowledge_base
    assert isinstance(found, KnowledgeBase)  # noqa: S101
    return found


Base = Annotated[KnowledgeBase, Depends(_of_the_app)]
DatasourceName = Annotated[str, Path(pattern=DATASOURCE_NAME, description="Letters, digits, dots, dashes, underscores")]
DocumentPath = Annotated[
    str, Path(min_length=1, max_length=1000, description="Its place in the datasource: `guides/deploy.md`.")
]
Link = Annotated[
    str | None, Query(pattern="^https?://", max_length=2000, description="Where people read it; its path otherwise.")
]


class SearchRequest(BaseModel):
    """What to look for, and where."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="A question, or the words a document would use.")
    limit: int = Field(USUAL_RESULTS, ge=1, le=MAX_RESULTS)
    filters: Filters | None = None
    datasource: str | None = Field(None, description="Its name; all are searched if it is left out.")


router = APIRouter(prefix="/v1")


@router.post("/search", summary="Search", responses=responses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE))
async def search(body: SearchRequest, base: Base) -> SearchResults:
    """The places that fit best, by words and by meaning. `note` says when nothing was found."""
    return await base.search(body.query, body.limit, body.filters, body.datasource)


@router.get("/datasources", summary="List datasources", responses=responses(HTTPStatus.SERVICE_UNAVAILABLE))
async def list_datasources(base: Base) -> DatasourcesView:
    return DatasourcesView.of(await base.datasources())


@router.delete(
    "/datasources/{name}",
    summary="Remove a datasource",
    status_code=HTTPStatus.NO_CONTENT,
    responses=responses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def remove_datasource(name: str, base: Base) -> None:
    """With all its documents."""
    await base.remove_datasource(name)


@router.get(
    "/documents/{document_id:path}",
    summary="Read a document",
    responses=responses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def read_document(document_id: str, base: Base) -> DocumentView:
    """The whole of it, as Markdown."""
    return DocumentView.of(await base.fetch_document(document_id))


@router.put(
    "/datasources/{name}/documents/{path:path}",
    summary="Keep a document",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in _KINDS},
        }
    },
    responses={
        HTTPStatus.CREATED.value: {"model": KeptView, "description": "It was not there before."},
        **responses(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE, HTTPStatus.SERVICE_UNAVAILABLE
        ),
    },
)
async def keep_document(
    name: DatasourceName,
    path: DocumentPath,
    request: Request,
    response: Response,
    base: Base,
    link: Link = None,
) -> KeptView:
    """The body is the file itself, Content-Type says which kind it is. What was kept under this path is replaced."""
    declared = request.headers.get("content-type")
    media_type = media_type_of(path, declared)
    if media_type is None:
        raise UnsupportedKindError(declared, _KINDS)
    kept = await base.keep_document(name, path, await request.body(), media_type, link)
    if kept.state == "added":
        response.status_code = HTTPStatus.CREATED
    return kept


@router.delete(
    "/datasources/{name}/documents/{path:path}",
    summary="Remove a document",
    status_code=HTTPStatus.NO_CONTENT,
    responses=responses(HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def remove_document(name: str, path: str, base: Base) -> None:
    await base.remove_document(name, path)


@router.post(
    "/ingest",
    summary="Ingest a page, a site or a sitemap",
    status_code=HTTPStatus.ACCEPTED,
    responses=responses(HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE),
)
async def start_ingest(body: IngestOrder, request: Request, response: Response, base: Base) -> IngestJob:
    """Goes on after the answer, whose header Location is where to ask how far it is."""
    job = await base.start_ingest(body)
    response.headers["Location"] = f"{request.scope.get('root_path', '')}/v1/ingest/{job.job}"
    return job


@router.get("/ingest", summary="List ingest jobs")
async def list_ingest_jobs(base: Base) -> IngestJobList:
    return IngestJobList(jobs=base.ingest_jobs())


@router.get("/ingest/{job}", summary="How far an ingest is", responses=responses(HTTPStatus.NOT_FOUND))
async def ingest_job(job: str, base: Base) -> IngestJob:
    return base.ingest_job(job)


@router.delete("/ingest/{job}", summary="Cancel an ingest", responses=responses(HTTPStatus.NOT_FOUND))
async def cancel_ingest(job: str, base: Base) -> IngestJob:
    """What was kept stays, and the same order goes on from there. A job that has ended is left as it is."""
    return await base.cancel_ingest(job)
