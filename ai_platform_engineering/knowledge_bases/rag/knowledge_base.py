"""The knowledge base: the way in to everything beside it. One per process, shared by whoever serves it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from ai_platform_engineering.knowledge_bases.rag.documents import Datasource, Document
from ai_platform_engineering.knowledge_bases.rag.lookup import (
    UnknownDatasourceError,
    UnknownDocumentError,
    nearest_ids,
    without_chunk,
)
from ai_platform_engineering.knowledge_bases.rag.results import Filters, SearchResults
from ai_platform_engineering.knowledge_bases.rag.stores.store import Scope, Store
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.errors import ReadableError

if TYPE_CHECKING:
    from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder

logger = logging.getLogger(__name__)

MOST_RESULTS: Final = 50
NOTHING_FOUND: Final = "Nothing was found. Try other words, or say that the knowledge base does not have it."

_Result = TypeVar("_Result")


class EmptyQueryError(ReadableError):
    def __init__(self) -> None:
        super().__init__("The query is empty; say in a few words what to look for.")


@dataclass(frozen=True, slots=True)
class _Parts:
    """What is opened on first use. `note` says why there are no vectors, where there are none."""

    store: Store
    embedder: Embedder | None
    note: str | None


class KnowledgeBase:
    """Opens nothing before it is used. A store that cannot be opened is tried again the next time."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._opening = asyncio.Lock()
        self._parts: _Parts | None = None
        self._product_docs: asyncio.Task[None] | None = None

    async def search(
        self, query: str, limit: int = 5, filters: Filters | None = None, datasource: str | None = None
    ) -> SearchResults:
        """The places that fit best, at most `limit` of them."""
        if not query.strip():
            raise EmptyQueryError
        parts = await self._ready()
        scope = (filters or Filters()).scope(datasource)
        return await asyncio.to_thread(_search, parts, query, max(1, min(limit, MOST_RESULTS)), scope, self._settings)

    async def fetch_document(self, document_id: str) -> Document:
        """The whole document; the id of one of its chunks will do."""
        parts = await self._ready()
        return await asyncio.to_thread(_document, parts.store, document_id.strip())

    async def datasources(self) -> list[Datasource]:
        parts = await self._ready()
        return await asyncio.to_thread(parts.store.datasources)

    async def fetch_url(self, url: str) -> Document:
        """A web page as a document that is kept nowhere."""
        from ai_platform_engineering.knowledge_bases.rag.web.client import WebClient  # noqa: PLC0415
        from ai_platform_engineering.knowledge_bases.rag.web.pages import read_page  # noqa: PLC0415
        from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy  # noqa: PLC0415

        async with WebClient(WebPolicy.of(self._settings)) as client:
            page = await read_page(client, url)
        return Document("web", page.url, page.title, page.text, page.url)

    async def aclose(self) -> None:
        if self._product_docs is not None:
            self._product_docs.cancel()
            await asyncio.wait({self._product_docs})
        async with self._opening:
            parts, self._parts = self._parts, None
        if parts is not None:
            await asyncio.to_thread(parts.store.close)

    async def _ready(self) -> _Parts:
        """The opened parts, with the product's documentation among what is kept."""
        parts = await self._open()
        if self._settings.rag_product_docs:
            if self._product_docs is None:
                self._product_docs = asyncio.create_task(self._ingest_product_docs(parts))
            # A caller who goes away does not stop it for those who come after.
            await asyncio.shield(self._product_docs)
        return parts

    async def _open(self) -> _Parts:
        async with self._opening:
            if self._parts is None:
                self._parts = await asyncio.to_thread(_open_parts, self._settings)
            return self._parts

    async def _ingest_product_docs(self, parts: _Parts) -> None:
        from ai_platform_engineering.knowledge_bases.rag.ingest.engine import ingest  # noqa: PLC0415
        from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import ProductDocs  # noqa: PLC0415

        try:
            await ingest(ProductDocs(), parts.store, parts.embedder)
        except Exception:
            logger.exception("The documentation of the product could not be brought into the knowledge base")


def _open_parts(settings: Settings) -> _Parts:
    from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import (  # noqa: PLC0415
        EmbeddingsError,
        embedder_of,
        why_none,
    )
    from ai_platform_engineering.knowledge_bases.rag.stores.opening import open_store  # noqa: PLC0415

    try:
        embedder, note = embedder_of(settings), why_none(settings)
    except EmbeddingsError as error:
        embedder, note = None, f"Search is by keywords alone: {error}"
    return _Parts(open_store(settings), embedder, note)


def _search(parts: _Parts, query: str, limit: int, scope: Scope, settings: Settings) -> SearchResults:
    from ai_platform_engineering.knowledge_bases.rag.searching import search  # noqa: PLC0415

    if scope.datasource is not None:
        _require_datasource(parts.store, scope.datasource)
    if scope.document_id is not None:
        _document(parts.store, scope.document_id)
    results = search(parts.store, parts.embedder, query, limit, scope)
    notes = [parts.note, None if results else NOTHING_FOUND]
    return SearchResults(query=query, results=results, note=" ".join(filter(None, notes)) or None)


def _require_datasource(store: Store, name: str) -> None:
    known = [datasource.name for datasource in store.datasources()]
    if name not in known:
        raise UnknownDatasourceError(name, known)


def _document(store: Store, document_id: str) -> Document:
    found = store.document(document_id) or store.document(without_chunk(document_id))
    if found is None:
        known = [known_id for datasource in store.datasources() for known_id in store.known(datasource.name)]
        raise UnknownDocumentError(document_id, nearest_ids(document_id, known))
    return found
