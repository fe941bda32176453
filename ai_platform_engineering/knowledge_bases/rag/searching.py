"""The search: keyword and vector results, fused into one ranking and filtered by relevance."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder, EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.results import SearchResult, SearchResults
from ai_platform_engineering.knowledge_bases.rag.snippets import snippet
from ai_platform_engineering.knowledge_bases.rag.stems import stem
from ai_platform_engineering.knowledge_bases.rag.stores.store import FoundChunk, Hit, KnowledgeStore, Scope
from ai_platform_engineering.text.query_words import query_words, words_of
from ai_platform_engineering.utils.errors import ReadableError

Rerank = Callable[[str, Sequence[str]], Sequence[float]]
"""Rates how well each text answers the query, from 0 to 1. Raises a `ReadableError` when it cannot."""

CANDIDATES: Final = 50
"""Results of each kind of search. Later ones do not reach the first page of the fused ranking."""

MAX_PER_DOCUMENT: Final = 2
"""Results of one document. More would hide other documents, and a reader can fetch the whole document."""

MAX_RERANKED: Final = 25

RRF_K: Final = 10
"""Constant of reciprocal rank fusion. It damps the first ranks, so that a chunk with good ranks in both rankings beats
one with the first rank in a single ranking. The usual value of 60 suits rankings of a thousand. In a ranking of 50 it
makes all ranks nearly equal and finds fewer answers in the first three results (`benchmarks/knowledge`)."""

_KEYWORD_WEIGHT: Final = 0.25
_MIN_BEST_RELEVANCE: Final = 0.38
_MIN_RELEVANCE: Final = 0.28
"""The relevance of a chunk is its cosine plus `_KEYWORD_WEIGHT` times the share of the query's words that it contains.

The best chunk decides whether the knowledge base covers the query at all. With the offline model, it reaches 0.38 for
questions that a text answers, and mostly stays below that for unrelated ones (`benchmarks/knowledge`). If it does, the
other chunks need less. For models whose cosines are all higher, these limits drop nothing."""

_MIN_KEYWORD_SHARE: Final = 0.34
"""The share of the query's words that a chunk without a vector must contain."""


def search(
    store: KnowledgeStore, embedder: Embedder | None, query: str, limit: int, scope: Scope, rerank: Rerank | None = None
) -> SearchResults:
    """The best chunks first, without weak matches. Blocks: call it in a thread.

    An error of the store is raised. If the embedder or the reranker fails, the search goes on without it and says so in
    a note.
    """
    # JSON can contain lone surrogates, which no model, store or file accepts.
    query = query.encode(errors="replace").decode()
    notes: list[str] = []
    lexical = store.lexical(query, CANDIDATES, scope)
    nearest = _nearest(store, embedder, query, scope, notes)
    if embedder is not None and lexical and not nearest and not notes:
        notes.append(
            f"Search was by keywords alone: no vectors of {embedder.name} are stored; the next ingest creates them."
        )
    fused = fuse(*(ranking for ranking in (lexical, nearest) if ranking))
    scores = {hit.chunk_id: hit.score for hit in fused}
    relevant = _relevant(store.load_chunks(list(scores)), query, nearest)
    found: Sequence[tuple[FoundChunk, float]] = [(chunk, scores[chunk.chunk.chunk_id]) for chunk in relevant]
    if rerank is not None and found:
        found = _reranked(found, query, rerank, notes)
    results = [_result(chunk, score, query) for chunk, score in islice(_limit_per_document(found), max(limit, 0))]
    return SearchResults(query=query, results=results, note=" ".join(notes) or None)


def fuse(*rankings: Sequence[Hit]) -> list[Hit]:
    """Reciprocal rank fusion: only ranks count, because scores of different kinds of search do not compare.

    A chunk that is first in all rankings has the score 1.
    """
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, hit in enumerate(ranking):
            scores[hit.chunk_id] += (RRF_K + 1) / (RRF_K + 1 + rank) / len(rankings)
    return [Hit(chunk_id, score) for chunk_id, score in sorted(scores.items(), key=lambda item: (-item[1], item[0]))]


def _nearest(store: KnowledgeStore, embedder: Embedder | None, query: str, scope: Scope, notes: list[str]) -> list[Hit]:
    if embedder is None:
        return []
    try:
        vector = embedder.embed_query(query)
    except EmbeddingsError as error:
        notes.append(f"Search was by keywords alone: {error}")
        return []
    return store.nearest(vector, embedder.name, CANDIDATES, scope)


def _relevant(chunks: Sequence[FoundChunk], query: str, nearest: Sequence[Hit]) -> list[FoundChunk]:
    stems = {stem(word) for word in query_words(query)}
    shares = [_keyword_share(stems, chunk) for chunk in chunks]
    if not nearest:
        return [chunk for chunk, share in zip(chunks, shares, strict=True) if share >= _MIN_KEYWORD_SHARE]
    cosines = {hit.chunk_id: hit.score for hit in nearest}
    # The cosine of a chunk outside of a full list of nearest ones is at most that of the last one. If the list is not
    # full, the chunk has no vector yet, and only its words count.
    farthest = nearest[-1].score if len(nearest) == CANDIDATES else None
    relevances = [
        _relevance(share, cosines.get(chunk.chunk.chunk_id, farthest))
        for chunk, share in zip(chunks, shares, strict=True)
    ]
    if max(relevances, default=0.0) < _MIN_BEST_RELEVANCE:
        return []
    return [chunk for chunk, relevance in zip(chunks, relevances, strict=True) if relevance >= _MIN_RELEVANCE]


def _relevance(keyword_share: float, cosine: float | None) -> float:
    if keyword_share == 1 or (cosine is None and keyword_share >= _MIN_KEYWORD_SHARE):
        return 1.0
    return (cosine or 0.0) + keyword_share * _KEYWORD_WEIGHT


def _keyword_share(stems: Set[str], chunk: FoundChunk) -> float:
    """The share of the query's stems that the chunk contains."""
    return len(stems & {stem(word) for word in words_of(_searchable(chunk))}) / len(stems) if stems else 0.0


def _searchable(chunk: FoundChunk) -> str:
    return f"{chunk.title}\n{chunk.chunk.section}\n{chunk.chunk.text}"


def _reranked(
    found: Sequence[tuple[FoundChunk, float]], query: str, rerank: Rerank, notes: list[str]
) -> Sequence[tuple[FoundChunk, float]]:
    best = [chunk for chunk, _ in found[:MAX_RERANKED]]
    try:
        scores = rerank(query, [_searchable(chunk) for chunk in best])
    except ReadableError as error:
        notes.append(f"Results are in the order of the search itself: {error}")
        return found
    rated = zip(best, (min(1.0, max(0.0, score)) for score in scores), strict=True)
    return sorted(rated, key=lambda chunk_and_score: -chunk_and_score[1])


def _limit_per_document(found: Iterable[tuple[FoundChunk, float]]) -> Iterator[tuple[FoundChunk, float]]:
    counts: Counter[str] = Counter()
    for chunk, score in found:
        counts[chunk.chunk.document_id] += 1
        if counts[chunk.chunk.document_id] <= MAX_PER_DOCUMENT:
            yield chunk, score


def _result(found: FoundChunk, score: float, query: str) -> SearchResult:
    return SearchResult(
        document_id=found.chunk.document_id,
        title=found.title,
        section=found.chunk.section,
        datasource=found.datasource,
        link=found.link,
        score=round(score, 4),
        snippet=snippet(found.chunk.text, query),
        updated=found.updated,
    )
