"""The vectors of the SQLite file, brought into memory and kept up to date with it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_file import Connection, FileIdentity
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_search import documents_of
from ai_platform_engineering.knowledge_bases.rag.stores.store import Hit, Scope, Vector
from ai_platform_engineering.knowledge_bases.rag.stores.vector_blocks import (
    BLOCK_ROWS,
    Blocks,
    Floats,
    block_of,
    numbers,
    packed,
    similarities,
    single,
)

_CANDIDATES: Final = 4
"""How many times as many as are asked for are compared again, in the precision in which they are kept."""

_CANDIDATE_VECTORS: Final = """
SELECT document.id || '#' || chunk.place, vector.body
FROM json_each(?) AS wanted
JOIN vector ON vector.chunk = wanted.value
JOIN chunk ON chunk.number = vector.chunk
JOIN document ON document.number = chunk.document
"""


class LoadedVectors:
    """Those of the file and the model that were asked for last; a process has one of each."""

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._of: tuple[FileIdentity | None, int] | None = None
        self._blocks = Blocks(generation=-1)

    @staticmethod
    def packed(vectors: Sequence[Vector]) -> list[bytes]:
        return packed(vectors)

    def nearest(self, connection: Connection, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        query = single(vector)
        row = connection.execute(
            "SELECT number FROM model WHERE name = ? AND dimensions = ?", (model, len(query))
        ).fetchone()
        if row is None:
            return []
        within, values = documents_of(scope)
        documents = numbers([number for (number,) in connection.execute(within, values)]) if within else None
        best = self._current(connection, row[0]).best(query, count * _CANDIDATES, documents)
        return _compared(connection, best, query)[:count]

    def _current(self, connection: Connection, model: int) -> Blocks:
        """Costs a look at one number while the file is unchanged, and else what came and went since."""
        with self._loading:
            generation: int = connection.execute("SELECT number FROM generation").fetchone()[0]
            if self._of != (connection.file, model):
                self._of, self._blocks = (connection.file, model), Blocks(generation=-1)
            # Another thread may have read a later state than this connection sees.
            if generation > self._blocks.generation:
                self._blocks = _refreshed(self._blocks, connection, model, generation)
            return self._blocks


def _compared(connection: Connection, chunks: Sequence[int], query: Floats) -> list[Hit]:
    candidates = connection.execute(_CANDIDATE_VECTORS, (json.dumps(chunks),)).fetchall()
    if not candidates:
        return []
    scores = similarities([body for _, body in candidates], query)
    hits = [Hit(chunk_id, score) for (chunk_id, _), score in zip(candidates, scores, strict=True)]
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))


def _refreshed(blocks: Blocks, connection: Connection, model: int, generation: int) -> Blocks:
    last = blocks.last
    if len(blocks) == _count(connection, model, last):
        blocks = Blocks(generation, blocks.blocks)
    else:
        rows = connection.execute("SELECT chunk FROM vector WHERE model = ? ORDER BY chunk", (model,)).fetchall()
        blocks = blocks.kept(generation, numbers([chunk for (chunk,) in rows]))
    new = connection.execute(
        "SELECT chunk, document, body FROM vector WHERE model = ? AND chunk > ? ORDER BY chunk", (model, last)
    )
    while batch := new.fetchmany(BLOCK_ROWS):
        blocks = blocks.extended(block_of(*zip(*batch, strict=True)))
    return blocks


def _count(connection: Connection, model: int, last: int) -> int:
    """How many of those up to `last` are still there; much cheaper than to ask which."""
    count: int = connection.execute(
        "SELECT count(*) FROM vector WHERE model = ? AND chunk <= ?", (model, last)
    ).fetchone()[0]
    return count
