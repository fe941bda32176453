"""Ingests a source into a store: changed documents are read, chunked, embedded and stored, missing ones removed.

A document is stored in one transaction, with a fingerprint of its content and of the versions of all processing steps.
An ingest has no other state. After a kill, the next one continues with the documents that are not stored yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence, Sized
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.chunked_text import Chunker, chunk_in_thread
from ai_platform_engineering.knowledge_bases.rag.chunking import CHUNKER_VERSION
from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document, document_id
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import PASSAGE_VERSION, Embedder, passage
from ai_platform_engineering.knowledge_bases.rag.ingest.report import FailedDocument, IngestReport, OnProgress, Progress
from ai_platform_engineering.knowledge_bases.rag.readers.reading import (
    READER_VERSION,
    UnreadableDocumentError,
    media_type_of,
)
from ai_platform_engineering.knowledge_bases.rag.source import Absent, DocumentSource, Item, LoadedItem, Unchanged
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion, KnowledgeStore, Vector
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

_MAX_LOADING: Final = 8
_QUEUE_SIZE: Final = 64
"""Chunked documents that wait to be embedded."""
_BATCH_CHUNKS: Final = 32
"""Chunks that are embedded together. A batch has several documents; a longer document takes several batches. The
offline model takes some seconds for a batch, which is the work that a kill loses."""
_OPTIMIZE_CHUNKS: Final = 500
"""New chunks after which the store is optimized."""
_RECIPE_LENGTH: Final = 16
_UNEXPECTED: Final = "An unexpected error occurred while it was read; the log has the details."


class DatasourceTakenError(ReadableError):
    """The datasource has documents of another origin, which this ingest would remove."""

    def __init__(self, datasource: str, stored: str, wanted: str) -> None:
        super().__init__(
            f"The datasource {datasource!r} holds documents from {stored}, not from {wanted}. Choose another name with "
            f"--datasource, or remove it first: platform-engineer rag remove {datasource}."
        )


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A document that is ready to be stored, except for its vectors."""

    document: Document
    version: DocumentVersion
    chunks: Sequence[Chunk]


async def ingest(
    source: DocumentSource,
    store: KnowledgeStore,
    embedder: Embedder | None,
    on_progress: OnProgress | None = None,
    chunker: Chunker = chunk_in_thread,
) -> IngestReport:
    """Synchronize the datasource in the store with the source. `chunker` reads and chunks the items.

    The report lists items that cannot be read. Raises a `ReadableError` if the items cannot be listed, or if the store
    or the embedder fails. Documents that were stored before the failure stay.
    """
    return await _Ingest(source, store, embedder, on_progress, chunker).run()


class _Ingest:
    def __init__(
        self,
        source: DocumentSource,
        store: KnowledgeStore,
        embedder: Embedder | None,
        on_progress: OnProgress | None,
        chunker: Chunker,
    ) -> None:
        self._source = source
        self._store = store
        self._embedder = embedder
        self._on_progress = on_progress
        self._chunker = chunker
        self._recipe = recipe_of(embedder)
        self._items = source.items()
        self._listing_lock = asyncio.Lock()
        self._prepared: asyncio.Queue[_Prepared | None] = asyncio.Queue(_QUEUE_SIZE)
        self._stored: dict[str, DocumentVersion] = {}
        self._seen: set[str] = set()
        self._missing: set[str] = set()
        self._failed: list[FailedDocument] = []
        self._added = self._updated = self._unchanged = self._chunks = 0

    async def run(self) -> IngestReport:
        began = monotonic()
        await asyncio.to_thread(self._claim_datasource)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._prepare_all())
                tasks.create_task(self._store_all())
        except BaseExceptionGroup as group:
            raise _first_error(group) from None
        finally:
            if isinstance(self._items, AsyncGenerator):
                await self._items.aclose()
        if self._source.complete:
            self._missing |= self._stored.keys() - self._seen
        self._missing &= self._stored.keys()
        if self._missing:
            await asyncio.to_thread(self._store.remove, self._missing)
        if self._chunks >= _OPTIMIZE_CHUNKS:
            await asyncio.to_thread(self._store.optimize)
        return IngestReport(
            added=self._added,
            updated=self._updated,
            unchanged=self._unchanged,
            removed=len(self._missing),
            failed=tuple(self._failed),
            chunks=self._chunks,
            seconds=monotonic() - began,
            complete=self._source.complete,
        )

    def _claim_datasource(self) -> None:
        name, origin = self._source.datasource, self._source.origin
        for existing in self._store.datasources():
            if existing.name == name and existing.origin != origin:
                raise DatasourceTakenError(name, existing.origin, origin)
        self._store.set_origin(name, origin)
        self._stored = dict(self._store.versions(name))

    async def _prepare_all(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_MAX_LOADING):
                tasks.create_task(self._prepare_some())
        await self._prepared.put(None)

    async def _prepare_some(self) -> None:
        while item := await self._next_item():
            prepared = await self._prepare(item)
            if prepared is None:
                self._report_progress(item.path)
            else:
                await self._prepared.put(prepared)

    async def _next_item(self) -> Item | None:
        async with self._listing_lock:
            async for item in self._items:
                listed = document_id(self._source.datasource, item.path)
                if listed not in self._seen:
                    self._seen.add(listed)
                    return item
        return None

    async def _prepare(self, item: Item) -> _Prepared | None:
        listed = document_id(self._source.datasource, item.path)
        stored = self._stored.get(listed)
        # A document of another recipe is always loaded, even if its source would report it as unchanged.
        current = stored if stored is not None and stored.fingerprint.startswith(self._recipe) else None
        try:
            match await item.load(current):
                case Unchanged():
                    self._unchanged += 1
                case Absent():
                    self._missing.add(listed)
                case LoadedItem() as loaded:
                    fresh = DocumentVersion(fingerprint_of(loaded, self._recipe), loaded.revision)
                    if stored is None or fresh.fingerprint != stored.fingerprint:
                        return await self._read(item.path, loaded, fresh)
                    if fresh != stored:
                        await asyncio.to_thread(self._store.update_version, listed, fresh)
                    self._unchanged += 1
        except ReadableError as error:
            self._failed.append(FailedDocument(item.path, str(error)))
        return None

    async def _read(self, path: str, loaded: LoadedItem, version: DocumentVersion) -> _Prepared:
        base_url = loaded.link if loaded.link.startswith(("http://", "https://")) else None
        media_type = media_type_of(loaded.name, loaded.media_type) or loaded.media_type
        if media_type is None:
            media_type = "text/html" if base_url else ""
        try:
            chunked = await self._chunker(loaded.content, media_type, loaded.name, base_url)
        except ReadableError:
            raise
        except Exception as error:
            logger.exception("%s of the datasource %s could not be read", path, self._source.datasource)
            raise UnreadableDocumentError(_UNEXPECTED) from error
        document = Document(self._source.datasource, path, chunked.title, chunked.text, loaded.link, loaded.updated)
        return _Prepared(document, version, chunked.chunks(document.document_id))

    async def _store_all(self) -> None:
        while batch := await self._next_batch():
            vectors = await self._embed([passage(one.document.title, chunk) for one in batch for chunk in one.chunks])
            for prepared in batch:
                count = len(prepared.chunks)
                await asyncio.to_thread(self._store_document, prepared, None if vectors is None else vectors[:count])
                vectors = None if vectors is None else vectors[count:]
                self._report_progress(prepared.document.path)

    async def _next_batch(self) -> list[_Prepared]:
        """The documents that are ready, up to the size of a batch. Empty at the end."""
        batch: list[_Prepared] = []
        chunks = 0
        while chunks < _BATCH_CHUNKS and not (batch and self._prepared.empty()):
            prepared = await self._prepared.get()
            if prepared is None:
                # The end marker stays in the queue for the next call.
                self._prepared.put_nowait(None)
                break
            batch.append(prepared)
            chunks += len(prepared.chunks)
        return batch

    async def _embed(self, passages: Sequence[str]) -> list[Vector] | None:
        if self._embedder is None:
            return None
        vectors: list[Vector] = []
        for start in range(0, len(passages), _BATCH_CHUNKS):
            vectors += await asyncio.to_thread(self._embedder.embed, passages[start : start + _BATCH_CHUNKS])
        return vectors

    def _store_document(self, prepared: _Prepared, vectors: list[Vector] | None) -> None:
        model = "" if self._embedder is None else self._embedder.name
        self._store.put(prepared.document, prepared.version, prepared.chunks, vectors, model)
        self._chunks += len(prepared.chunks)
        if prepared.document.document_id in self._stored:
            self._updated += 1
        else:
            self._added += 1

    def _report_progress(self, path: str) -> None:
        if self._on_progress is None:
            return
        done = self._added + self._updated + self._unchanged + len(self._failed) + len(self._missing)
        total = len(self._source) if isinstance(self._source, Sized) else None
        self._on_progress(Progress(done, total, self._chunks, path))


def _first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first readable error, or else the first error. The others may be consequences of it."""
    readable = group.subgroup(ReadableError)
    error: BaseException = readable or group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def recipe_of(embedder: Embedder | None) -> str:
    """A digest of the versions of all processing steps. Every fingerprint starts with it."""
    embedding = (PASSAGE_VERSION, embedder.name) if embedder else ()
    return f"{_digest(READER_VERSION, CHUNKER_VERSION, *embedding)[:_RECIPE_LENGTH]}:"


def fingerprint_of(loaded: LoadedItem, recipe: str) -> str:
    """Of the content and its stored attributes, except for the time of the last change."""
    return recipe + _digest(loaded.content, loaded.media_type or "", loaded.name, loaded.link)


def _digest(*parts: str | bytes) -> str:
    digest = sha256()
    for part in parts:
        content = part.encode(errors="surrogatepass") if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()
