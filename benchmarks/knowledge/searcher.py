"""A process that searches the knowledge base of its settings: `python -m benchmarks.knowledge.searcher`.

It says that it is ready, then obeys lines of JSON: `load` the embedding model, `open` the store, `search` for queries.
Each is answered with the seconds it took, in parts.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, ParamSpec, TypeVar

from ai_platform_engineering.knowledge_bases.rag.embeddings.choice import embedder_of
from ai_platform_engineering.knowledge_bases.rag.embeddings.embedder import Embedder
from ai_platform_engineering.knowledge_bases.rag.searching import search
from ai_platform_engineering.knowledge_bases.rag.stores.opening import open_store
from ai_platform_engineering.knowledge_bases.rag.stores.store import FoundChunk, Hit, Scope, Store, Vector
from ai_platform_engineering.settings import load_settings
from benchmarks.knowledge.rankings import EVERYWHERE, LIMIT

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def main() -> None:
    settings = load_settings(env_file=None)
    embedder = embedder_of(settings)
    assert embedder is not None
    store: Store | None = None
    print("ready", flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        began = perf_counter()
        told: Any
        match command["do"]:
            case "load":
                embedder.embed_query("hello")
                told = perf_counter() - began
            case "open":
                store = open_store(settings)
                told = perf_counter() - began
            case _:
                assert store is not None
                told = [searched(store, embedder, query) for query in command["queries"]]
        print(json.dumps(told), flush=True)


def searched(store: Store, embedder: Embedder, query: str) -> dict[str, float]:
    """The seconds of one search and of its parts."""
    watch = Watch()
    began = perf_counter()
    search(WatchedStore(store, watch), WatchedEmbedder(embedder, watch), query, LIMIT, EVERYWHERE)
    return {"total": perf_counter() - began, **watch.seconds}


class Watch:
    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def time(
        self, part: str, call: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Result:
        began = perf_counter()
        try:
            return call(*args, **kwargs)
        finally:
            self.seconds[part] += perf_counter() - began


class WatchedEmbedder:
    def __init__(self, embedder: Embedder, watch: Watch) -> None:
        self._embedder = embedder
        self._watch = watch
        self.name = embedder.name

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return self._embedder.embed(texts)

    def embed_query(self, text: str) -> Vector:
        return self._watch.time("embed", self._embedder.embed_query, text)


class WatchedStore:
    """What a search needs of a store."""

    def __init__(self, store: Store, watch: Watch) -> None:
        self._store = store
        self._watch = watch

    def lexical(self, query: str, count: int, scope: Scope) -> list[Hit]:
        return self._watch.time("words", self._store.lexical, query, count, scope)

    def nearest(self, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        return self._watch.time("vectors", self._store.nearest, vector, model, count, scope)

    def found(self, chunk_ids: Sequence[str]) -> list[FoundChunk]:
        return self._store.found(chunk_ids)


if __name__ == "__main__":
    main()
