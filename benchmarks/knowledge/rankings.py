"""The same question asked of each kind of search, and of the search that callers get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder
from ai_platform_engineering.knowledge_bases.rag.hybrid import fuse
from ai_platform_engineering.knowledge_bases.rag.ingest.product_docs import ProductDocs
from ai_platform_engineering.knowledge_bases.rag.searching import CANDIDATES, search
from ai_platform_engineering.knowledge_bases.rag.stores.store import Hit, Scope, Store
from benchmarks.knowledge.questions import Place

LIMIT = 10

EVERYWHERE = Scope()


def rankings(store: Store, embedder: Embedder, query: str) -> dict[str, list[Place]]:
    """By the name of the search, the places it finds, best first."""
    words = store.lexical(query, CANDIDATES, EVERYWHERE)
    vectors = store.nearest(embedder.embed_query(query), embedder.name, CANDIDATES, EVERYWHERE)
    found = search(store, embedder, query, LIMIT, EVERYWHERE).results
    return {
        "bm25": _places(store, words),
        "vectors": _places(store, vectors),
        "hybrid": _places(store, fuse(words, vectors)),
        "search": _once(Place.of(path_of(result.document_id), result.section) for result in found),
    }


def path_of(document_id: str) -> str:
    """As it is labelled: documents of the product by their path."""
    return document_id.removeprefix(f"{ProductDocs.datasource}:")


def _places(store: Store, hits: Sequence[Hit]) -> list[Place]:
    found = store.found([hit.chunk_id for hit in hits])
    return _once(Place.of(path_of(one.chunk.document_id), one.chunk.section) for one in found)


def _once(places: Iterable[Place]) -> list[Place]:
    """A section of several chunks counts where the first of them stands."""
    return list(dict.fromkeys(places))
