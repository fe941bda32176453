"""The results of each kind of search, and of the complete search, for one question."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import ProductDocs
from ai_platform_engineering.knowledge_bases.rag.searching import CANDIDATES, fuse, search
from ai_platform_engineering.knowledge_bases.rag.stores.store import Hit, KnowledgeStore, Scope
from benchmarks.knowledge.questions import Place

LIMIT = 10

EVERYWHERE = Scope()


def rankings(store: KnowledgeStore, embedder: Embedder, query: str) -> dict[str, list[Place]]:
    """The sections that each search finds, best first, by the name of the search."""
    words = store.lexical(query, CANDIDATES, EVERYWHERE)
    vectors = store.nearest(embedder.embed_query(query), embedder.name, CANDIDATES, EVERYWHERE)
    found = search(store, embedder, query, LIMIT, EVERYWHERE).results
    return {
        "bm25": _places(store, words),
        "vectors": _places(store, vectors),
        "hybrid": _places(store, fuse(words, vectors)),
        "search": _distinct(Place.of(path_of(result.document_id), result.section) for result in found),
    }


def path_of(document_id: str) -> str:
    """As in `questions.yaml`: documents of the product by their path only."""
    return document_id.removeprefix(f"{ProductDocs.datasource}:")


def _places(store: KnowledgeStore, hits: Sequence[Hit]) -> list[Place]:
    found = store.load_chunks([hit.chunk_id for hit in hits])
    return _distinct(Place.of(path_of(one.chunk.document_id), one.chunk.section) for one in found)


def _distinct(places: Iterable[Place]) -> list[Place]:
    """A section with several chunks has the rank of the first of them."""
    return list(dict.fromkeys(places))
