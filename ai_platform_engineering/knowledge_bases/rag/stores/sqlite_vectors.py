"""The vectors of the SQLite file, brought into memory and kept up to date with it."""

from __future__ import annotations

import sqlite3
import threading

from ai_platform_engineering.knowledge_bases.rag.stores.vector_blocks import BLOCK_ROWS, Blocks, block_of, numbers


class LoadedVectors:
    """Those of the model that was asked for last; a process has one."""

    def __init__(self) -> None:
        self._loading = threading.Lock()
        self._model: int | None = None
        self._blocks = Blocks(generation=-1)

    def current(self, connection: sqlite3.Connection, model: int) -> Blocks:
        """Costs a look at one number while the file is unchanged, and else what came and went since."""
        with self._loading:
            generation: int = connection.execute("SELECT number FROM generation").fetchone()[0]
            if model != self._model:
                self._model, self._blocks = model, Blocks(generation=-1)
            # Another thread may have read a later state than this connection sees.
            if generation > self._blocks.generation:
                self._blocks = _refreshed(self._blocks, connection, model, generation)
            return self._blocks


def _refreshed(blocks: Blocks, connection: sqlite3.Connection, model: int, generation: int) -> Blocks:
    rows = connection.execute("SELECT chunk FROM vector WHERE model = ? ORDER BY chunk", (model,)).fetchall()
    last = blocks.last
    blocks = blocks.kept(generation, numbers([chunk for (chunk,) in rows]))
    new = connection.execute(
        "SELECT chunk, document, body FROM vector WHERE model = ? AND chunk > ? ORDER BY chunk", (model, last)
    )
    while batch := new.fetchmany(BLOCK_ROWS):
        blocks = blocks.extended(block_of(*zip(*batch, strict=True)))
    return blocks
