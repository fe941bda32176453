"""A process that searches the knowledge base of its settings: `python -m benchmarks.knowledge.searcher`.

It prints `ready` and then executes commands, one line of JSON each: `load` the embedding model, `open` the store,
`search` for queries. The reply to a command is the seconds that it took; for a search, by part.
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
from ai_platform_engineering.knowledge_bases.rag.stores.store import FoundChunk, Hit, KnowledgeStore, Scope, Vector
from ai_platform_engineering.settings import load_settings
from benchmarks.knowledge.rankings import EVERYWHERE, LIMIT

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def main() -> None:
    settings = load_settings(env_file=None)
    embedder = embedder_of(settings)
    assert embedder is not None
    store: KnowledgeStore | None = None
    print("ready", flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        began = perf_counter()
        reply: Any
        match command["do"]:
            case "load":
                embedder.embed_query("hello")
                reply = perf_counter() - began
            case "open":
                store = open_store(settings)
                reply = perf_counter() - began
            case _:
                assert store is not None
                reply = [searched(store, embedder, query) for query in command["queries"]]
        print(json.dumps(reply), flush=True)


def searched(store: KnowledgeStore, embedder: Embedder, query: str) -> dict[str, float]:
    """The seconds of one search, in total and by part."""
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
    """The methods of a store that a search calls."""

    def __init__(self, store: KnowledgeStore, watch: Watch) -> None:
        self._store = store
        self._watch = watch

    def lexical(self, query: str, count: int, scope: Scope) -> list[Hit]:
        return self._watch.time("words", self._store.lexical, query, count, scope)

    def nearest(self, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        return self._watch.time("vectors", self._store.nearest, vector, model, count, scope)

    def load_chunks(self, chunk_ids: Sequence[str]) -> list[FoundChunk]:
        return self._store.load_chunks(chunk_ids)


if __name__ == "__main__":
    main()
