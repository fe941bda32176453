"""The in-memory copy of the vectors in the SQLite file, updated when the file changes."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_file import FileConnection, FileIdentity
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_search import documents_of
from ai_platform_engineering.knowledge_bases.rag.stores.store import Hit, Scope, Vector
from ai_platform_engineering.knowledge_bases.rag.stores.vector_blocks import (
    BLOCK_ROWS,
    Floats,
    VectorBlocks,
    block_of,
    encode_vectors,
    numbers,
    similarities,
    to_floats,
)

_CANDIDATES: Final = 4
"""For each requested result, so many candidates are compared again with the stored precision."""

_CANDIDATE_VECTORS: Final = """
SELECT document.id || '#' || chunk.place, vector.body
FROM json_each(?) AS wanted
JOIN vector ON vector.chunk = wanted.value
JOIN chunk ON chunk.number = vector.chunk
JOIN document ON document.number = chunk.document
"""


class VectorCache:
    """Holds the vectors of one file and one model: those of the last search. A process normally has one of each."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[FileIdentity | None, int] | None = None
        self._blocks = VectorBlocks(generation=-1)

    @staticmethod
    def encode(vectors: Sequence[Vector]) -> list[bytes]:
        return encode_vectors(vectors)

    def nearest(self, connection: FileConnection, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        query = to_floats(vector)
        row = connection.execute(
            "SELECT number FROM model WHERE name = ? AND dimensions = ?", (model, len(query))
        ).fetchone()
        if row is None:
            return []
        within, values = documents_of(scope)
        documents = numbers([number for (number,) in connection.execute(within, values)]) if within else None
        best = self._current(connection, row[0]).best(query, count * _CANDIDATES, documents)
        return _compared(connection, best, query)[:count]

    def _current(self, connection: FileConnection, model: int) -> VectorBlocks:
        """Reads a single number while the file is unchanged, and otherwise only the changes."""
        with self._lock:
            generation: int = connection.execute("SELECT number FROM generation").fetchone()[0]
            if self._key != (connection.file, model):
                self._key, self._blocks = (connection.file, model), VectorBlocks(generation=-1)
            # Another thread may already have loaded a later state than this connection sees.
            if generation > self._blocks.generation:
                self._blocks = _refreshed(self._blocks, connection, model, generation)
            return self._blocks


def _compared(connection: FileConnection, chunks: Sequence[int], query: Floats) -> list[Hit]:
    candidates = connection.execute(_CANDIDATE_VECTORS, (json.dumps(chunks),)).fetchall()
    if not candidates:
        return []
    scores = similarities([body for _, body in candidates], query)
    hits = [Hit(chunk_id, score) for (chunk_id, _), score in zip(candidates, scores, strict=True)]
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))


def _refreshed(blocks: VectorBlocks, connection: FileConnection, model: int, generation: int) -> VectorBlocks:
    last = blocks.last
    if len(blocks) == _count(connection, model, last):
        blocks = VectorBlocks(generation, blocks.blocks)
    else:
        rows = connection.execute("SELECT chunk FROM vector WHERE model = ? ORDER BY chunk", (model,)).fetchall()
        blocks = blocks.filtered(generation, numbers([chunk for (chunk,) in rows]))
    new = connection.execute(
        "SELECT chunk, document, body FROM vector WHERE model = ? AND chunk > ? ORDER BY chunk", (model, last)
    )
    while batch := new.fetchmany(BLOCK_ROWS):
        blocks = blocks.extended(block_of(*zip(*batch, strict=True)))
    return blocks


def _count(connection: FileConnection, model: int, last: int) -> int:
    """The number of stored vectors up to chunk `last`. Much cheaper than listing them."""
    count: int = connection.execute(
        "SELECT count(*) FROM vector WHERE model = ? AND chunk <= ?", (model, last)
    ).fetchone()[0]
    return count
