"""Bringing a source into a store: what changed is read, cut, embedded and kept, what is gone is removed.

A document is kept whole or not at all, with a fingerprint of all it was made from. That is the whole memory of an
ingest: one that was killed goes on with the documents that are not there yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence, Sized
from dataclasses import dataclass
from time import monotonic
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.cutting import Cutter, cut_here
from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document, document_id
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder
from ai_platform_engineering.knowledge_bases.rag.embeddings.passages import passage
from ai_platform_engineering.knowledge_bases.rag.ingest.fingerprints import fingerprint_of, recipe_of
from ai_platform_engineering.knowledge_bases.rag.ingest.report import Failure, IngestReport, Progress
from ai_platform_engineering.knowledge_bases.rag.readers.reading import UnreadableError, media_type_of
from ai_platform_engineering.knowledge_bases.rag.source import Absent, Item, Loaded, Source, Unchanged
from ai_platform_engineering.knowledge_bases.rag.stores.store import Known, Store, Vector
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

OnProgress = Callable[[Progress], None]

_LOADING_AT_ONCE: Final = 8
_WAITING: Final = 64
"""Documents that are read and cut, and wait to be embedded."""
_BATCH: Final = 32
"""Chunks that are embedded together, of as many documents as it takes; a longer document goes through in parts. A small
model takes some seconds for that many: what is lost when the process is killed."""
_MANY: Final = 500
"""Chunks, after which the store is asked to settle."""
_UNEXPECTED: Final = "Something unexpected went wrong while it was read; the log has more."


class DatasourceTakenError(ReadableError):
    """The datasource holds something else, which would be removed."""

    def __init__(self, datasource: str, kept: str, wanted: str) -> None:
        super().__init__(
            f"The datasource {datasource!r} holds what came from {kept}, not from {wanted}. Choose another name with "
            f"--datasource, or remove it first: platform-engineer rag remove {datasource}."
        )


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A document that is ready to be kept, but for its vectors."""

    document: Document
    known: Known
    chunks: Sequence[Chunk]


async def ingest(
    source: Source,
    store: Store,
    embedder: Embedder | None,
    on_progress: OnProgress | None = None,
    cut: Cutter = cut_here,
) -> IngestReport:
    """Make the datasource in the store what the source is now. `cut` reads its items and cuts them.

    Items that cannot be read are in the report. Raises a `ReadableError` where there is no listing, or where the store
    or the embedder fails; what was kept by then stays.
    """
    return await _Ingest(source, store, embedder, on_progress, cut).run()


class _Ingest:
    def __init__(
        self, source: Source, store: Store, embedder: Embedder | None, on_progress: OnProgress | None, cut: Cutter
    ) -> None:
        self._source = source
        self._store = store
        self._embedder = embedder
        self._on_progress = on_progress
        self._cut = cut
        self._recipe = recipe_of(embedder)
        self._items = source.items()
        self._listing = asyncio.Lock()
        self._prepared: asyncio.Queue[_Prepared | None] = asyncio.Queue(_WAITING)
        self._known: dict[str, Known] = {}
        self._seen: set[str] = set()
        self._gone: set[str] = set()
        self._failed: list[Failure] = []
        self._added = self._updated = self._unchanged = self._chunks = 0

    async def run(self) -> IngestReport:
        began = monotonic()
        await asyncio.to_thread(self._claim)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._prepare_all())
                tasks.create_task(self._keep_all())
        except BaseExceptionGroup as group:
            raise _first(group) from None
        finally:
            if isinstance(self._items, AsyncGenerator):
                await self._items.aclose()
        if self._source.complete:
            self._gone |= self._known.keys() - self._seen
        self._gone &= self._known.keys()
        if self._gone:
            await asyncio.to_thread(self._store.remove, self._gone)
        if self._chunks >= _MANY:
            await asyncio.to_thread(self._store.settle)
        return IngestReport(
            added=self._added,
            updated=self._updated,
            unchanged=self._unchanged,
            removed=len(self._gone),
            failed=tuple(self._failed),
            chunks=self._chunks,
            seconds=monotonic() - began,
            complete=self._source.complete,
        )

    def _claim(self) -> None:
        name, origin = self._source.datasource, self._source.origin
        for kept in self._store.datasources():
            if kept.name == name and kept.origin != origin:
                raise DatasourceTakenError(name, kept.origin, origin)
        self._store.note_origin(name, origin)
        self._known = dict(self._store.known(name))

    async def _prepare_all(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_LOADING_AT_ONCE):
                tasks.create_task(self._prepare_some())
        await self._prepared.put(None)

    async def _prepare_some(self) -> None:
        while item := await self._next_item():
            prepared = await self._prepare(item)
            if prepared is None:
                self._tell(item.path)
            else:
                await self._prepared.put(prepared)

    async def _next_item(self) -> Item | None:
        async with self._listing:
            async for item in self._items:
                listed = document_id(self._source.datasource, item.path)
                if listed not in self._seen:
                    self._seen.add(listed)
                    return item
        return None

    async def _prepare(self, item: Item) -> _Prepared | None:
        listed = document_id(self._source.datasource, item.path)
        known = self._known.get(listed)
        # A source is not asked whether it has changed since a document was kept that has to be made again anyway.
        current = known if known is not None and known.fingerprint.startswith(self._recipe) else None
        try:
            match await item.load(current):
                case Unchanged():
                    self._unchanged += 1
                case Absent():
                    self._gone.add(listed)
                case Loaded() as loaded:
                    fresh = Known(fingerprint_of(loaded, self._recipe), loaded.revision)
                    if known is None or fresh.fingerprint != known.fingerprint:
                        return await self._read(item.path, loaded, fresh)
                    if fresh != known:
                        await asyncio.to_thread(self._store.note_revision, listed, fresh)
                    self._unchanged += 1
        except ReadableError as error:
            self._failed.append(Failure(item.path, str(error)))
        return None

    async def _read(self, path: str, loaded: Loaded, known: Known) -> _Prepared:
        base_url = loaded.link if loaded.link.startswith(("http://", "https://")) else None
        media_type = media_type_of(loaded.name, loaded.media_type) or loaded.media_type
        if media_type is None:
            media_type = "text/html" if base_url else ""
        try:
            cut = await self._cut(loaded.content, media_type, loaded.name, base_url)
        except ReadableError:
            raise
        except Exception as error:
            logger.exception("%s of the datasource %s could not be read", path, self._source.datasource)
            raise UnreadableError(_UNEXPECTED) from error
        document = Document(self._source.datasource, path, cut.title, cut.text, loaded.link, loaded.updated)
        return _Prepared(document, known, cut.chunks(document.document_id))

    async def _keep_all(self) -> None:
        while batch := await self._next_batch():
            vectors = await self._embed([passage(one.document.title, chunk) for one in batch for chunk in one.chunks])
            for prepared in batch:
                count = len(prepared.chunks)
                await asyncio.to_thread(self._keep, prepared, None if vectors is None else vectors[:count])
                vectors = None if vectors is None else vectors[count:]
                self._tell(prepared.document.path)

    async def _next_batch(self) -> list[_Prepared]:
        """What is ready by now, up to the size of a batch; nothing at the end."""
        batch: list[_Prepared] = []
        chunks = 0
        while chunks < _BATCH and not (batch and self._prepared.empty()):
            prepared = await self._prepared.get()
            if prepared is None:
                # Left for the next call, which finds nothing else.
                self._prepared.put_nowait(None)
                break
            batch.append(prepared)
            chunks += len(prepared.chunks)
        return batch

    async def _embed(self, passages: Sequence[str]) -> list[Vector] | None:
        if self._embedder is None:
            return None
        vectors: list[Vector] = []
        for start in range(0, len(passages), _BATCH):
            vectors += await asyncio.to_thread(self._embedder.embed, passages[start : start + _BATCH])
        return vectors

    def _keep(self, prepared: _Prepared, vectors: list[Vector] | None) -> None:
        model = "" if self._embedder is None else self._embedder.name
        self._store.put(prepared.document, prepared.known, prepared.chunks, vectors, model)
        self._chunks += len(prepared.chunks)
        if prepared.document.document_id in self._known:
            self._updated += 1
        else:
            self._added += 1

    def _tell(self, path: str) -> None:
        if self._on_progress is None:
            return
        done = self._added + self._updated + self._unchanged + len(self._failed) + len(self._gone)
        total = len(self._source) if isinstance(self._source, Sized) else None
        self._on_progress(Progress(done, total, self._chunks, path))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The sentence for people among the errors, if there is one: the others may come from it."""
    readable = group.subgroup(ReadableError)
    error: BaseException = readable or group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
