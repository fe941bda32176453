"""What the knowledge base costs as it grows: bringing documents in, searching them, memory and disk."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from time import perf_counter
from typing import Final

import numpy as np

from ai_platform_engineering.knowledge_bases.rag.chunking import chunks_of
from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import passage
from ai_platform_engineering.knowledge_bases.rag.embeddings.offline import OfflineEmbedder
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import ProductDocs
from ai_platform_engineering.knowledge_bases.rag.readers.reading import read
from ai_platform_engineering.knowledge_bases.rag.source import DocumentSource, LoadedItem
from ai_platform_engineering.knowledge_bases.rag.stores.opening import open_store
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion
from ai_platform_engineering.settings import load_settings
from benchmarks.effort import Effort
from benchmarks.knowledge.beginning import Beginning
from benchmarks.knowledge.questions import questions
from benchmarks.knowledge.readmes import PackageReadmes
from benchmarks.knowledge.recombined import Vectors, recombined
from benchmarks.knowledge.servers import TemporaryStore, in_a_file, in_postgres
from benchmarks.processes import started
from benchmarks.rows import Row

STORES: Final = {"sqlite": "SQLite", "postgres": "Postgres"}
PARTS: Final = {"embed": "the question's vector", "words": "by words", "vectors": "by vectors", "rest": "the rest"}


@dataclass(frozen=True, slots=True)
class _Originals:
    """Real chunks, with the vectors of some of them."""

    chunks: Sequence[Chunk]
    vectors: Vectors
    model: str


def knowledge(effort: Effort) -> list[Row]:
    rows, originals = _made(effort)
    rows += _loaded_model()
    with in_a_file() as kept:
        rows += _grown("sqlite", kept, originals, effort.chunks, effort)
    with in_postgres() as kept:
        if kept is not None:
            rows += _grown("postgres", kept, originals, effort.chunks_in_postgres, effort)
    return rows


def _made(effort: Effort) -> tuple[list[Row], _Originals]:
    """How fast documents become chunks and chunks become vectors."""
    sources = ProductDocs(), Beginning(PackageReadmes(), effort.readmes)
    loaded = [(source.datasource, path, one) for source in sources for path, one in asyncio.run(_loaded(source))]
    _read(*loaded[0])
    began = perf_counter()
    documents = [_read(*one) for one in loaded]
    chunks = [chunk for _, pieces in documents for chunk in pieces]
    reading = perf_counter() - began

    passages = [passage(document.title, chunk) for document, pieces in documents for chunk in pieces]
    chosen = passages[:: max(1, len(passages) // effort.embedded)]
    embedder = OfflineEmbedder()
    embedder.embed_query("hello")
    began = perf_counter()
    vectors = embedder.embed(chosen)
    embedding = perf_counter() - began
    rows = [
        Row(
            "knowledge.read", f"Read and cut: {len(chunks)} chunks of real documents", len(chunks) / reading, "chunks/s"
        ),
        Row("knowledge.embed", f"Embed: {len(chosen)} of them", len(chosen) / embedding, "chunks/s"),
    ]
    return rows, _Originals(chunks, np.array(vectors, dtype=np.float32), embedder.name)


def _loaded_model() -> list[Row]:
    with in_a_file() as kept, started("benchmarks.knowledge.searcher", environ=kept.environ) as process:
        rest = process.resident_mb()
        seconds = process.order({"do": "load"})
        return [
            Row("knowledge.load", "Load the embedding model", seconds, "s"),
            Row("knowledge.memory.rest", "Memory before that", rest, "MB"),
            Row("knowledge.memory.model", "Memory after that", process.resident_mb(), "MB"),
        ]


async def _loaded(source: DocumentSource) -> list[tuple[str, LoadedItem]]:
    items = [(item.path, await item.load(None)) async for item in source.items()]
    return [(path, one) for path, one in items if isinstance(one, LoadedItem)]


def _read(datasource: str, path: str, loaded: LoadedItem) -> tuple[Document, list[Chunk]]:
    reading = read(loaded.content, loaded.media_type or "", loaded.name)
    document = Document(datasource, path, reading.title, reading.text, loaded.link)
    return document, chunks_of(document)


def _grown(store: str, kept: TemporaryStore, originals: _Originals, sizes: Sequence[int], effort: Effort) -> list[Row]:
    """One store that is filled up to each size and searched there."""
    rows: list[Row] = []
    before = 0
    for size in sizes:
        per_second = _filled(kept, originals, before, size)
        name, label = f"knowledge.{store}.{size}", f"{STORES[store]}, {size:,} chunks"
        rows.append(Row(f"{name}.keep", f"{label}: keep the last {size - before:,}", per_second, "chunks/s"))
        rows += _searched(name, label, kept, effort)
        rows.append(Row(f"{name}.disk", f"{label}: on disk", kept.megabytes(), "MB"))
        before = size
    return rows


def _filled(kept: TemporaryStore, originals: _Originals, before: int, size: int) -> float:
    """Chunks that were kept in a second."""
    store = open_store(load_settings(kept.environ, env_file=None))
    seconds = 0.0
    try:
        for one in recombined(originals.chunks, originals.vectors, before, size - before):
            began = perf_counter()
            store.put(one.document, DocumentVersion("benchmark"), one.chunks, list(one.vectors), originals.model)
            seconds += perf_counter() - began
        began = perf_counter()
        store.optimize()
        seconds += perf_counter() - began
    finally:
        store.close()
    return (size - before) / seconds


def _searched(name: str, label: str, kept: TemporaryStore, effort: Effort) -> list[Row]:
    """By a process that has only just been started."""
    asked = questions()
    queries = [question.text for question in asked[:: max(1, len(asked) // effort.queries)]]
    with started("benchmarks.knowledge.searcher", environ=kept.environ) as process:
        process.order({"do": "load"})
        alone = process.resident_mb()
        opening = process.order({"do": "open"})
        (first,) = process.order({"do": "search", "queries": queries[:1]})
        before = process.cpu_seconds()
        warm = [one for _ in range(2) for one in process.order({"do": "search", "queries": queries})]
        spent = process.cpu_seconds() - before
        resident = process.resident_mb()
    middle = {part: median(one.get(part, 0.0) for one in warm) * 1000 for part in ("total", *PARTS)}
    slow = quantiles((one["total"] for one in warm), n=20)[-1]
    # So that the parts add up.
    middle["rest"] = max(2 * middle["total"] - sum(middle.values()), 0.0)
    return [
        Row(f"{name}.first", f"{label}: open it, and the first search", (opening + first["total"]) * 1000, "ms"),
        Row(f"{name}.p50", f"{label}: a search, median", middle["total"], "ms"),
        Row(f"{name}.p95", f"{label}: a search, 95th percentile", slow * 1000, "ms"),
        *(Row(f"{name}.{part}", f"{label}: … of which {what}", middle[part], "ms") for part, what in PARTS.items()),
        Row(f"{name}.cpu", f"{label}: CPU of a search", spent / len(warm) * 1000, "ms"),
        Row(f"{name}.memory", f"{label}: memory of the process that searches", resident, "MB"),
        Row(f"{name}.more-memory", f"{label}: … of which more than before it was opened", resident - alone, "MB"),
    ]
