"""The opened knowledge base: store, embedder and reranker, and the operations on them.

It imports large libraries, so `KnowledgeBase` imports it at the first use.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Self

from ai_platform_engineering.knowledge_bases.rag.chunked_text import Chunker, chunk_in_thread
from ai_platform_engineering.knowledge_bases.rag.documents import Datasource, Document, document_id
from ai_platform_engineering.knowledge_bases.rag.embeddings.choice import embedder_of, why_none
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder, EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.ingest.addresses import address_source
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import ingest
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import DATASOURCE, ProductDocs, product_documents
from ai_platform_engineering.knowledge_bases.rag.ingest.report import IngestReport, OnProgress
from ai_platform_engineering.knowledge_bases.rag.jobs import IngestRequest, IngestResult, ReportProgress, Work
from ai_platform_engineering.knowledge_bases.rag.names import (
    UnknownDatasourceError,
    UnknownDocumentError,
    check_datasource_name,
    name_of_host,
    nearest_ids,
    without_chunk,
)
from ai_platform_engineering.knowledge_bases.rag.readers.reading import UnreadableDocumentError
from ai_platform_engineering.knowledge_bases.rag.reranking import reranker_of
from ai_platform_engineering.knowledge_bases.rag.results import SearchResults
from ai_platform_engineering.knowledge_bases.rag.searching import Rerank, search
from ai_platform_engineering.knowledge_bases.rag.source import DocumentSource, UploadSource
from ai_platform_engineering.knowledge_bases.rag.stores.opening import open_store
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStore, Scope
from ai_platform_engineering.knowledge_bases.rag.views import UploadState
from ai_platform_engineering.knowledge_bases.rag.visibility import hides_datasources, is_visible
from ai_platform_engineering.knowledge_bases.rag.web.policy import WebPolicy
from ai_platform_engineering.knowledge_bases.rag.web.urls import page_url
from ai_platform_engineering.settings import Settings

logger = logging.getLogger(__name__)

NOTHING_FOUND: Final = "Nothing was found. Try other words, or say that the knowledge base does not have it."


@dataclass(frozen=True, slots=True)
class Backend:
    """Methods that are not async block: call them in a thread. `note` is the reason if there are no vectors."""

    store: KnowledgeStore
    embedder: Embedder | None
    rerank: Rerank | None
    note: str | None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        try:
            embedder, note = embedder_of(settings), why_none(settings)
        except EmbeddingsError as error:
            embedder, note = None, f"Search is by keywords alone: {error}"
        return cls(open_store(settings), embedder, reranker_of(settings), note)

    def search(self, query: str, limit: int, scope: Scope) -> SearchResults:
        if scope.datasource is not None:
            self._require_datasource(scope.datasource)
        if hides_datasources():
            scope = replace(scope, visible=tuple(datasource.name for datasource in self.datasources()))
        if scope.document_id is not None:
            scope = replace(scope, document_id=self.document(scope.document_id).document_id)
        found = search(self.store, self.embedder, query, limit, scope, self.rerank)
        notes = (found.note, self.note, None if found.results else NOTHING_FOUND)
        return found.model_copy(update={"note": " ".join(filter(None, notes)) or None})

    def datasources(self) -> list[Datasource]:
        return [datasource for datasource in self.store.datasources() if is_visible(datasource.name)]

    def document(self, wanted: str) -> Document:
        """By the id of the document or of one of its chunks."""
        found = self.store.document(wanted) or self.store.document(without_chunk(wanted))
        if found is None or not is_visible(found.datasource):
            known = [each for datasource in self.datasources() for each in self.store.versions(datasource.name)]
            raise UnknownDocumentError(wanted, nearest_ids(wanted, known))
        return found

    def remove_document(self, datasource: str, path: str) -> None:
        self._require_datasource(datasource)
        wanted = document_id(datasource, path)
        known = self.store.versions(datasource)
        if wanted not in known:
            raise UnknownDocumentError(wanted, nearest_ids(wanted, list(known)))
        self.store.remove([wanted])

    def remove_datasource(self, name: str) -> None:
        if not self.store.remove_datasource(name):
            self._require_datasource(name)

    async def ingest(
        self, source: DocumentSource, on_progress: OnProgress | None = None, chunker: Chunker = chunk_in_thread
    ) -> IngestReport:
        return await ingest(source, self.store, self.embedder, on_progress, chunker)

    async def store_upload(self, upload: UploadSource, chunker: Chunker) -> UploadState:
        report = await self.ingest(upload, chunker=chunker)
        for failure in report.failed:
            raise UnreadableDocumentError(failure.reason)
        return "added" if report.added else "updated" if report.updated else "unchanged"

    async def ingest_product_docs(self, on_searchable: Callable[[], None]) -> None:
        """Calls `on_searchable` when keyword search finds them, which is at once. Computing their vectors takes
        longer."""
        stored = await asyncio.to_thread(self.store.versions, DATASOURCE)
        if not stored.keys() >= await asyncio.to_thread(product_documents):
            await self._ingest_product_words()
        on_searchable()
        try:
            await self.ingest(ProductDocs())
        except EmbeddingsError as error:
            logger.warning("The documentation of the product is found by keywords alone: %s", error)
            await self._ingest_product_words()

    async def _ingest_product_words(self) -> None:
        await ingest(ProductDocs(), self.store, None)

    def web_ingest(self, request: IngestRequest, settings: Settings) -> tuple[str, Work]:
        """The name of the datasource, and the function that ingests it. An invalid request is rejected here."""
        policy = WebPolicy.of(settings)
        if request.max_pages is not None:
            policy = replace(policy, max_pages=min(request.max_pages, policy.max_pages))
        url = str(page_url(request.url))
        datasource = check_datasource_name(request.datasource or name_of_host(url))

        async def work(report_progress: ReportProgress) -> IngestResult:
            async with address_source(url, policy, datasource, request.kind, request.depth) as (source, chunker):
                report = await self.ingest(source, lambda progress: report_progress(progress.documents), chunker)
            return IngestResult.of(report)

        return datasource, work

    async def aclose(self) -> None:
        await asyncio.to_thread(self.store.close)

    def _require_datasource(self, name: str) -> None:
        known = [datasource.name for datasource in self.datasources()]
        if name not in known:
            raise UnknownDatasourceError(name, known)
