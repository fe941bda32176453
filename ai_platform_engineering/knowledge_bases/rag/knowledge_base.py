"""The entry point of this package. A process has one knowledge base, shared by its MCP server, REST API and CLI."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ai_platform_engineering.knowledge_bases.rag.documents import Datasource, Document, document_id
from ai_platform_engineering.knowledge_bases.rag.jobs import IngestJob, IngestJobs, IngestRequest
from ai_platform_engineering.knowledge_bases.rag.names import check_datasource_name
from ai_platform_engineering.knowledge_bases.rag.results import Filters, SearchResults
from ai_platform_engineering.knowledge_bases.rag.source import LoadedItem, UploadSource
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStoreError
from ai_platform_engineering.knowledge_bases.rag.views import UploadResult, WebPageView
from ai_platform_engineering.knowledge_bases.rag.web.reader_pool import ReaderPool
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.errors import ReadableError

if TYPE_CHECKING:
    from ai_platform_engineering.knowledge_bases.rag.backend import Backend

logger = logging.getLogger(__name__)

DEFAULT_RESULTS: Final = 5
MAX_RESULTS: Final = 50
MAX_QUERY_LENGTH: Final = 10_000
_MAX_READERS: Final = 2


class QueryError(ReadableError):
    def __init__(self, problem: str) -> None:
        super().__init__(f"The query {problem}; say in a few words what to look for.")


class WrongSettingError(ReadableError):
    """A setting that this operation needs is invalid. Other operations do not need it."""


class KnowledgeBase:
    """The store is opened at the first use. If that fails, the next use tries again."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._opening: asyncio.Task[Backend] | None = None
        self._product_docs: asyncio.Task[bool] | None = None
        self._product_docs_searchable = asyncio.Event()
        self._jobs = IngestJobs()
        self._readers = ReaderPool(settings.fetch_url_timeout, _MAX_READERS)

    async def search(
        self, query: str, limit: int = DEFAULT_RESULTS, filters: Filters | None = None, datasource: str | None = None
    ) -> SearchResults:
        """The best matches, at most `limit` of them."""
        if not query.strip():
            raise QueryError("is empty")
        if len(query) > MAX_QUERY_LENGTH:
            raise QueryError(f"is longer than {MAX_QUERY_LENGTH} characters")
        backend = await self._ready()
        scope = (filters or Filters()).scope(datasource)
        return await asyncio.to_thread(backend.search, query, max(1, min(limit, MAX_RESULTS)), scope)

    async def fetch_document(self, wanted: str) -> Document:
        """By the id of the document or of one of its chunks."""
        backend = await self._ready()
        return await asyncio.to_thread(backend.document, wanted.strip())

    async def datasources(self) -> list[Datasource]:
        backend = await self._ready()
        return await asyncio.to_thread(backend.datasources)

    async def fetch_url(self, url: str) -> WebPageView:
        """Read a web page now, without storing it."""
        from ai_platform_engineering.knowledge_bases.rag.web.client import WebClient, read_page  # noqa: PLC0415
        from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy  # noqa: PLC0415

        try:
            policy = WebPolicy.of(self.settings)
        except SettingsError as error:
            raise WrongSettingError(str(error)) from error
        async with WebClient(policy) as client:
            page = await read_page(client, self._readers, url.strip())
        return WebPageView(title=page.title, url=page.url, updated=page.updated, text=page.text)

    async def store_document(
        self, datasource: str, path: str, content: bytes, media_type: str, link: str | None = None
    ) -> UploadResult:
        """Store a file in a datasource of uploaded documents. It replaces the document that has this path."""
        backend = await self._open()
        item = LoadedItem(content, media_type, path, link or path, updated=datetime.now(UTC))
        upload = UploadSource(check_datasource_name(datasource), path, item)
        state = await backend.store_upload(upload, self._readers.chunk)
        return UploadResult(document_id=document_id(datasource, path), state=state)

    async def remove_document(self, datasource: str, path: str) -> None:
        backend = await self._open()
        await asyncio.to_thread(backend.remove_document, datasource, path)

    async def remove_datasource(self, name: str) -> None:
        backend = await self._open()
        await asyncio.to_thread(backend.remove_datasource, name)

    async def start_ingest(self, request: IngestRequest) -> IngestJob:
        """Ingest a page, a site or a sitemap in the background."""
        backend = await self._open()
        try:
            datasource, work = backend.web_ingest(request, self.settings)
        except SettingsError as error:
            raise WrongSettingError(str(error)) from error
        return self._jobs.start(datasource, request.url, work)

    def ingest_job(self, job: str) -> IngestJob:
        return self._jobs.job(job)

    def ingest_jobs(self) -> list[IngestJob]:
        """The newest first."""
        return self._jobs.jobs()

    async def cancel_ingest(self, job: str) -> IngestJob:
        return await self._jobs.cancel(job)

    async def aclose(self) -> None:
        await self._jobs.aclose()
        await self._readers.aclose()
        if self._product_docs is not None:
            self._product_docs.cancel()
            await asyncio.wait({self._product_docs})
            self._product_docs = None
            # A task that is canceled before its first step does not do so itself.
            self._product_docs_searchable.set()
        opening, self._opening = self._opening, None
        if opening is not None:
            with suppress(ReadableError):
                await (await opening).aclose()

    async def _ready(self) -> Backend:
        """Opened, and the product's documentation can be found."""
        backend = await self._open()
        if self.settings.rag_product_docs:
            if self._product_docs is None or (self._product_docs.done() and not self._product_docs.result()):
                self._product_docs = asyncio.create_task(
                    _ingest_product_docs(backend, self._product_docs_searchable.set)
                )
            await self._product_docs_searchable.wait()
        return backend

    async def _open(self) -> Backend:
        opening = self._opening
        if opening is None:
            opening = self._opening = asyncio.create_task(asyncio.to_thread(_open, self.settings))
        # All callers share one opening. A canceled caller must not cancel it for the others.
        try:
            return await asyncio.shield(opening)
        finally:
            if self._opening is opening and opening.done() and opening.exception() is not None:
                self._opening = None


def _open(settings: Settings) -> Backend:
    from ai_platform_engineering.knowledge_bases.rag.backend import Backend  # noqa: PLC0415

    return Backend.of(settings)


async def _ingest_product_docs(backend: Backend, on_searchable: Callable[[], None]) -> bool:
    """False if a later call should try again, because the store failed."""
    try:
        await backend.ingest_product_docs(on_searchable)
    except ReadableError as error:
        logger.error("The documentation of the product could not be ingested: %s", error)
        return not isinstance(error, KnowledgeStoreError)
    except Exception:
        logger.exception("The documentation of the product could not be ingested")
    finally:
        on_searchable()
    return True
