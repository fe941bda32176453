"""Vectors in memory, to be compared with a query's all at once.

A byte per number: a quarter of the memory of single precision, and faster too, because a scan waits for memory. What
that loses is small, and the store looks at the best ones again in the precision in which they are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ai_platform_engineering.knowledge_bases.rag.stores.store import Vector

Floats = npt.NDArray[np.float32]
Numbers = npt.NDArray[np.int64]

BLOCK_ROWS: Final = 4096
_SLICE_ROWS: Final = 512
"""Widened to single precision at a time: this much stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some of the vectors. Never changed: a reader may be in the middle of it."""

    chunks: Numbers
    documents: Numbers
    scales: Floats
    rows: npt.NDArray[np.int8]

    def where(self, kept: npt.NDArray[np.bool_]) -> Block:
        return Block(self.chunks[kept], self.documents[kept], self.scales[kept], self.rows[kept])

    def joined(self, other: Block) -> Block:
        return Block(
            np.concatenate((self.chunks, other.chunks)),
            np.concatenate((self.documents, other.documents)),
            np.concatenate((self.scales, other.scales)),
            np.concatenate((self.rows, other.rows)),
        )

    def similarities(self, query: Floats) -> Floats:
        result = np.empty(len(self.chunks), np.float32)
        wide = np.empty((min(_SLICE_ROWS, len(self.chunks)), len(query)), np.float32)
        for start in range(0, len(result), _SLICE_ROWS):
            rows = self.rows[start : start + _SLICE_ROWS]
            part = wide[: len(rows)]
            np.copyto(part, rows)
            np.dot(part, query, out=result[start : start + len(rows)])
        result *= self.scales
        return result


@dataclass(frozen=True, slots=True)
class Blocks:
    """All vectors of one model, as they were at `generation` of the file. In the order of their chunk numbers."""

    generation: int
    blocks: tuple[Block, ...] = ()

    def __len__(self) -> int:
        return sum(len(block.chunks) for block in self.blocks)

    @property
    def last(self) -> int:
        return int(self.blocks[-1].chunks[-1]) if self.blocks else 0

    def kept(self, generation: int, chunks: Numbers) -> Blocks:
        """Only what is in `chunks`, which is in order."""
        remaining = []
        for block in self.blocks:
            kept = _among(block.chunks, chunks)
            if kept.all():
                remaining.append(block)
            elif kept.any():
                remaining.append(block.where(kept))
        return Blocks(generation, tuple(remaining))

    def extended(self, block: Block) -> Blocks:
        if self.blocks and len(self.blocks[-1].chunks) + len(block.chunks) <= BLOCK_ROWS:
            return Blocks(self.generation, (*self.blocks[:-1], self.blocks[-1].joined(block)))
        return Blocks(self.generation, (*self.blocks, block))

    def best(self, query: Floats, count: int, documents: Numbers | None) -> list[int]:
        """Chunk numbers of the `count` nearest, and of any that are as near as the last of them.

        `documents` are those to look in, in order; None for all.
        """
        if not self.blocks:
            return []
        scores = np.concatenate([block.similarities(query) for block in self.blocks])
        chunks = np.concatenate([block.chunks for block in self.blocks])
        if documents is not None:
            within = np.concatenate([_among(block.documents, documents) for block in self.blocks])
            scores, chunks = scores[within], chunks[within]
        if len(scores) > count:
            edge = np.partition(scores, len(scores) - count)[len(scores) - count]
            chunks = chunks[scores >= edge]
        return [int(chunk) for chunk in chunks]


def packed(vectors: Sequence[Vector]) -> list[bytes]:
    """As they are kept: half precision, which is off by less than a thousandth."""
    return [row.tobytes() for row in np.asarray(vectors, np.float32).astype("<f2")]


def unpacked(bodies: Sequence[bytes]) -> Floats:
    return np.frombuffer(b"".join(bodies), "<f2").astype(np.float32).reshape(len(bodies), -1)


def single(vector: Vector) -> Floats:
    return np.asarray(vector, np.float32)


def block_of(chunks: Sequence[int], documents: Sequence[int], bodies: Sequence[bytes]) -> Block:
    wide = unpacked(bodies)
    largest = np.abs(wide).max(axis=1)
    scales = (np.where(largest > 0, largest, 1) / 127).astype(np.float32)
    rows = np.rint(wide / scales[:, None]).astype(np.int8)
    return Block(numbers(chunks), numbers(documents), scales, rows)


def numbers(values: Sequence[int]) -> Numbers:
    return np.asarray(values, np.int64)


def similarities(bodies: Sequence[bytes], query: Floats) -> list[float]:
    # Rounded, because the same vector gives a slightly different sum in another row.
    return [round(float(value), 6) for value in unpacked(bodies) @ query]


def _among(values: Numbers, ordered: Numbers) -> npt.NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    result: npt.NDArray[np.bool_] = ordered[places] == values
    return result
