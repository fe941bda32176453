"""The knowledge base: the way in to everything beside it. One per process, shared by whoever serves it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ai_platform_engineering.knowledge_bases.rag.documents import Datasource, Document, document_id
from ai_platform_engineering.knowledge_bases.rag.ingest.upload import UploadSource
from ai_platform_engineering.knowledge_bases.rag.jobs import IngestJob, IngestJobs, IngestOrder
from ai_platform_engineering.knowledge_bases.rag.names import check_datasource_name
from ai_platform_engineering.knowledge_bases.rag.results import Filters, SearchResults
from ai_platform_engineering.knowledge_bases.rag.source import Loaded
from ai_platform_engineering.knowledge_bases.rag.stores.store import StoreError
from ai_platform_engineering.knowledge_bases.rag.views import KeptView, WebPageView
from ai_platform_engineering.knowledge_bases.rag.web.apart import Apart
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.errors import ReadableError

if TYPE_CHECKING:
    from ai_platform_engineering.knowledge_bases.rag.opened import Opened

logger = logging.getLogger(__name__)

USUAL_RESULTS: Final = 5
MAX_RESULTS: Final = 50
MAX_QUERY_LENGTH: Final = 10_000
_READ_AT_ONCE: Final = 2


class QueryError(ReadableError):
    def __init__(self, problem: str) -> None:
        super().__init__(f"The query {problem}; say in a few words what to look for.")


class WrongSettingError(ReadableError):
    """A setting that only matters to what was asked for cannot be used."""


class KnowledgeBase:
    """Opens nothing before it is used. A store that cannot be opened is tried again the next time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._opening: asyncio.Task[Opened] | None = None
        self._product_docs: asyncio.Task[bool] | None = None
        self._findable = asyncio.Event()
        self._jobs = IngestJobs()
        self._apart = Apart(settings.fetch_url_timeout, _READ_AT_ONCE)

    async def search(
        self, query: str, limit: int = USUAL_RESULTS, filters: Filters | None = None, datasource: str | None = None
    ) -> SearchResults:
        """The places that fit best, at most `limit` of them."""
        if not query.strip():
            raise QueryError("is empty")
        if len(query) > MAX_QUERY_LENGTH:
            raise QueryError(f"is longer than {MAX_QUERY_LENGTH} characters")
        opened = await self._ready()
        scope = (filters or Filters()).scope(datasource)
        return await asyncio.to_thread(opened.search, query, max(1, min(limit, MAX_RESULTS)), scope)

    async def fetch_document(self, wanted: str) -> Document:
        """The document with this id; that of one of its chunks will do."""
        opened = await self._ready()
        return await asyncio.to_thread(opened.document, wanted.strip())

    async def datasources(self) -> list[Datasource]:
        opened = await self._ready()
        return await asyncio.to_thread(opened.store.datasources)

    async def fetch_url(self, url: str) -> WebPageView:
        """A web page, read now and kept nowhere."""
        from ai_platform_engineering.knowledge_bases.rag.web.client import WebClient  # noqa: PLC0415
        from ai_platform_engineering.knowledge_bases.rag.web.pages import read_page  # noqa: PLC0415
        from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy  # noqa: PLC0415

        try:
            policy = WebPolicy.of(self.settings)
        except SettingsError as error:
            raise WrongSettingError(str(error)) from error
        async with WebClient(policy) as client:
            page = await read_page(client, self._apart, url.strip())
        return WebPageView(title=page.title, url=page.url, updated=page.updated, text=page.text)

    async def keep_document(
        self, datasource: str, path: str, content: bytes, media_type: str, link: str | None = None
    ) -> KeptView:
        """Keep a file in a datasource of uploaded documents, in place of what was kept under its path."""
        opened = await self._open()
        loaded = Loaded(content, media_type, path, link or path, updated=datetime.now(UTC))
        state = await opened.keep(UploadSource(check_datasource_name(datasource), path, loaded), self._apart.cut)
        return KeptView(document_id=document_id(datasource, path), state=state)

    async def remove_document(self, datasource: str, path: str) -> None:
        opened = await self._open()
        await asyncio.to_thread(opened.remove_document, datasource, path)

    async def remove_datasource(self, name: str) -> None:
        opened = await self._open()
        await asyncio.to_thread(opened.remove_datasource, name)

    async def start_ingest(self, order: IngestOrder) -> IngestJob:
        """Bring in a page, a site or a sitemap; goes on after this has returned."""
        opened = await self._open()
        try:
            datasource, work = opened.web_ingest(order, self.settings)
        except SettingsError as error:
            raise WrongSettingError(str(error)) from error
        return self._jobs.start(datasource, order.url, work)

    def ingest_job(self, job: str) -> IngestJob:
        return self._jobs.job(job)

    def ingest_jobs(self) -> list[IngestJob]:
        """Those that are remembered, the newest first."""
        return self._jobs.jobs()

    async def cancel_ingest(self, job: str) -> IngestJob:
        return await self._jobs.cancel(job)

    async def aclose(self) -> None:
        await self._jobs.aclose()
        await self._apart.aclose()
        if self._product_docs is not None:
            self._product_docs.cancel()
            await asyncio.wait({self._product_docs})
            self._product_docs = None
        opening, self._opening = self._opening, None
        if opening is not None:
            with suppress(ReadableError):
                await (await opening).aclose()

    async def _ready(self) -> Opened:
        """Opened, with the product's documentation among what can be found."""
        opened = await self._open()
        if self.settings.rag_product_docs:
            if self._product_docs is None or (self._product_docs.done() and not self._product_docs.result()):
                self._product_docs = asyncio.create_task(_ingest_product_docs(opened, self._findable.set))
            await self._findable.wait()
        return opened

    async def _open(self) -> Opened:
        opening = self._opening
        if opening is None:
            opening = self._opening = asyncio.create_task(asyncio.to_thread(_open, self.settings))
        # Opened once for all who wait, also when the one who came first goes away.
        try:
            return await asyncio.shield(opening)
        finally:
            if self._opening is opening and opening.done() and opening.exception() is not None:
                self._opening = None


def _open(settings: Settings) -> Opened:
    from ai_platform_engineering.knowledge_bases.rag.opened import Opened  # noqa: PLC0415

    return Opened.of(settings)


async def _ingest_product_docs(opened: Opened, findable: Callable[[], None]) -> bool:
    """Whether that is done with; a store that fails may work again the next time."""
    try:
        await opened.ingest_product_docs(findable)
    except ReadableError as error:
        logger.error("The documentation of the product could not be brought into the knowledge base: %s", error)
        return not isinstance(error, StoreError)
    except Exception:
        logger.exception("The documentation of the product could not be brought into the knowledge base")
    finally:
        findable()
    return True
