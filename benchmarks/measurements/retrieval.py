"""How well questions find the places that answer them: by words, by vectors, by both, and as callers get it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder
from ai_platform_engineering.knowledge_bases.rag.embeddings.offline import OfflineEmbedder
from ai_platform_engineering.knowledge_bases.rag.ingest.engine import ingest
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import ProductDocs
from ai_platform_engineering.knowledge_bases.rag.ingest.report import IngestReport
from ai_platform_engineering.knowledge_bases.rag.searching import search
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_store import SqliteKnowledgeStore
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStore
from benchmarks.effort import Effort
from benchmarks.knowledge.beginning import Beginning
from benchmarks.knowledge.questions import Place, Question, questions, unrelated
from benchmarks.knowledge.rankings import EVERYWHERE, LIMIT, path_of, rankings
from benchmarks.knowledge.readmes import PackageReadmes
from benchmarks.knowledge.scores import answered, ndcg, recall, reciprocal_rank
from benchmarks.rows import Row

WAYS: Final[Mapping[str, str]] = {
    "bm25": "by words (BM25)",
    "vectors": "by vectors",
    "hybrid": "hybrid",
    "search": "as callers get it",
}
METRICS: Final[Mapping[str, tuple[str, Callable[[Sequence[Place], Collection[Place]], float]]]] = {
    "ndcg": ("nDCG@10", ndcg),
    "recall": ("Recall@10", recall),
    "mrr": ("MRR@10", reciprocal_rank),
    "first3": ("Answer in the first 3", answered),
}

Found = Sequence[tuple[Question, Mapping[str, Sequence[Place]]]]


def retrieval(effort: Effort) -> list[Row]:
    embedder = OfflineEmbedder()
    with TemporaryDirectory() as folder:
        store = SqliteKnowledgeStore(Path(folder, "knowledge.db"))
        try:
            reports = asyncio.run(_ingested(store, embedder, effort))
            asked = [question for question in questions() if _answerable(question, store)]
            found = [(question, rankings(store, embedder, question.text)) for question in asked]
            strangers = unrelated()
            answers = [search(store, embedder, text, LIMIT, EVERYWHERE).results for text in strangers]
        finally:
            store.close()
    chunks, seconds = sum(report.chunks for report in reports), sum(report.seconds for report in reports)
    return [
        Row("retrieval.ingest", f"Ingest of {chunks} chunks: reading to keeping", chunks / seconds, "chunks/s"),
        *scores(found),
        Row(
            "retrieval.unrelated",
            f"Questions about something else that find nothing, of {len(strangers)}",
            sum(not results for results in answers),
            "questions",
        ),
    ]


def scores(found: Found) -> list[Row]:
    rows = [
        Row(f"retrieval.{metric}.{way}", f"{title} of {len(found)} questions: {WAYS[way]}", _mean(found, way, of), "")
        for metric, (title, of) in METRICS.items()
        for way in WAYS
    ]
    for metric in ("ndcg", "recall"):
        title, of = METRICS[metric]
        alone = max(_mean(found, way, of) for way in ("bm25", "vectors"))
        rows.append(
            Row(
                f"retrieval.alone.{metric}",
                f"{title}: the better one alone, against hybrid",
                alone / _mean(found, "hybrid", of),
                "x",
            )
        )
    for kind in dict.fromkeys(question.kind for question, _ in found):
        part = [one for one in found if one[0].kind == kind]
        rows += [
            Row(f"retrieval.{kind}.{way}", f"nDCG@10 of {len(part)} {kind}: {label}", _mean(part, way, ndcg), "")
            for way, label in WAYS.items()
        ]
    return rows


def _mean(found: Found, way: str, metric: Callable[[Sequence[Place], Collection[Place]], float]) -> float:
    return fmean(metric(ranked[way], question.places) for question, ranked in found)


async def _ingested(store: KnowledgeStore, embedder: Embedder, effort: Effort) -> list[IngestReport]:
    sources = Beginning(ProductDocs(), effort.pages), Beginning(PackageReadmes(), effort.readmes)
    return [await ingest(source, store, embedder) for source in sources]


def _answerable(question: Question, store: KnowledgeStore) -> bool:
    """Whether all that answers it is there: in a quick run most is not."""
    kept = {path_of(document) for document in store.versions(ProductDocs.datasource)}
    return all(place.path in kept for place in question.places)
