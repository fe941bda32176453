"""The search: by words and by meaning, made into one list that is worth reading."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from itertools import islice
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder, EmbeddingsError
from ai_platform_engineering.knowledge_bases.rag.hybrid import fuse
from ai_platform_engineering.knowledge_bases.rag.results import SearchResult, SearchResults
from ai_platform_engineering.knowledge_bases.rag.snippets import snippet
from ai_platform_engineering.knowledge_bases.rag.stems import stem
from ai_platform_engineering.knowledge_bases.rag.stores.store import FoundChunk, Hit, Scope, Store
from ai_platform_engineering.text.query_words import query_words, words_of
from ai_platform_engineering.utils.errors import ReadableError

Rerank = Callable[[str, Sequence[str]], Sequence[float]]
"""How well each text answers the query, from 0 to 1. Raises a `ReadableError` when it cannot say."""

CANDIDATES: Final = 50
"""Of each kind of search; what comes later in both does not reach the first page."""

MAX_PER_DOCUMENT: Final = 2
"""Results of one document: a reader gets it whole with one call, so further ones would hide other documents."""

MAX_RERANKED: Final = 25

_WORTH_OF_WORDS: Final = 0.25
_ENOUGH_FOR_THE_BEST: Final = 0.38
_ENOUGH: Final = 0.28
"""What a chunk is worth is its cosine, and this for the share of the query's words it has. The best one tells whether
anything here is about the query: with the offline model, of questions about something else it is mostly worth less, of
those that a text answers 0.38 and more (`benchmarks/knowledge`). Then what answers may be worth less than that. Models
whose cosines are all higher have nothing left out by this."""

_ENOUGH_WORDS: Final = 0.34
"""The share of the query's words where there are no vectors to ask."""


def search(
    store: Store, embedder: Embedder | None, query: str, limit: int, scope: Scope, rerank: Rerank | None = None
) -> SearchResults:
    """The best places first, none that has little to do with the query. Blocks: call it through a thread.

    A store that fails raises; an embedder or a reranker that fails leaves a search that is not as good, and a note.
    """
    # JSON can carry half of a sign, which no model, store or file takes.
    query = query.encode(errors="replace").decode()
    notes: list[str] = []
    lexical = store.lexical(query, CANDIDATES, scope)
    nearest = _nearest(store, embedder, query, scope, notes)
    if embedder is not None and lexical and not nearest and not notes:
        notes.append(
            f"Search was by keywords alone: no vectors of {embedder.name} are kept; the next ingest makes them."
        )
    fused = fuse(*(ranking for ranking in (lexical, nearest) if ranking))
    scores = {hit.chunk_id: hit.score for hit in fused}
    relevant = _relevant(store.found(list(scores)), query, nearest)
    found: Sequence[tuple[FoundChunk, float]] = [(chunk, scores[chunk.chunk.chunk_id]) for chunk in relevant]
    if rerank is not None and found:
        found = _reranked(found, query, rerank, notes)
    results = [_result(chunk, score, query) for chunk, score in islice(_spread(found), max(limit, 0))]
    return SearchResults(query=query, results=results, note=" ".join(notes) or None)


def _nearest(store: Store, embedder: Embedder | None, query: str, scope: Scope, notes: list[str]) -> list[Hit]:
    if embedder is None:
        return []
    try:
        vector = embedder.embed_query(query)
    except EmbeddingsError as error:
        notes.append(f"Search was by keywords alone: {error}")
        return []
    return store.nearest(vector, embedder.name, CANDIDATES, scope)


def _relevant(chunks: Sequence[FoundChunk], query: str, nearest: Sequence[Hit]) -> list[FoundChunk]:
    wanted = {stem(word) for word in query_words(query)}
    shares = [_share(wanted, chunk) for chunk in chunks]
    if not nearest:
        return [chunk for chunk, share in zip(chunks, shares, strict=True) if share >= _ENOUGH_WORDS]
    cosines = {hit.chunk_id: hit.score for hit in nearest}
    # What is not among the nearest is at most as near as the last of them, or, where all are among them, has no vector
    # yet: then its words have to do.
    farthest = nearest[-1].score if len(nearest) == CANDIDATES else None
    worths = [
        _worth(share, cosines.get(chunk.chunk.chunk_id, farthest)) for chunk, share in zip(chunks, shares, strict=True)
    ]
    if max(worths, default=0.0) < _ENOUGH_FOR_THE_BEST:
        return []
    return [chunk for chunk, worth in zip(chunks, worths, strict=True) if worth >= _ENOUGH]


def _worth(share: float, cosine: float | None) -> float:
    if share == 1 or (cosine is None and share >= _ENOUGH_WORDS):
        return 1.0
    return (cosine or 0.0) + share * _WORTH_OF_WORDS


def _share(wanted: Set[str], chunk: FoundChunk) -> float:
    """Of the words that are wanted, how many it has."""
    return len(wanted & {stem(word) for word in words_of(_searchable(chunk))}) / len(wanted) if wanted else 0.0


def _searchable(chunk: FoundChunk) -> str:
    """All words by which a chunk is found."""
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


def _spread(found: Iterable[tuple[FoundChunk, float]]) -> Iterator[tuple[FoundChunk, float]]:
    """Without the third and later places of a document."""
    seen: Counter[str] = Counter()
    for chunk, score in found:
        seen[chunk.chunk.document_id] += 1
        if seen[chunk.chunk.document_id] <= MAX_PER_DOCUMENT:
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
