"""Vectors in memory, in blocks that are compared with the vector of a query at once.

Each number takes one byte, a quarter of single precision. This is also faster, because a scan is bound by memory
bandwidth. The store compares the best candidates again with the stored precision, so the loss does not matter.
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
"""Rows that are converted to single precision at a time, so that they fit the processor's cache."""


@dataclass(frozen=True, slots=True)
class VectorBlock:
    """Some of the vectors. Immutable, because other threads may be reading it."""

    chunks: Numbers
    documents: Numbers
    scales: Floats
    rows: npt.NDArray[np.int8]

    def where(self, selected: npt.NDArray[np.bool_]) -> VectorBlock:
        return VectorBlock(self.chunks[selected], self.documents[selected], self.scales[selected], self.rows[selected])

    def joined(self, other: VectorBlock) -> VectorBlock:
        return VectorBlock(
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
class VectorBlocks:
    """All vectors of one model at one `generation` of the file, in the order of their chunk numbers."""

    generation: int
    blocks: tuple[VectorBlock, ...] = ()

    def __len__(self) -> int:
        return sum(len(block.chunks) for block in self.blocks)

    @property
    def last(self) -> int:
        return int(self.blocks[-1].chunks[-1]) if self.blocks else 0

    def filtered(self, generation: int, chunks: Numbers) -> VectorBlocks:
        """Only the vectors of `chunks`, which are sorted."""
        remaining = []
        for block in self.blocks:
            selected = _is_in(block.chunks, chunks)
            if selected.all():
                remaining.append(block)
            elif selected.any():
                remaining.append(block.where(selected))
        return VectorBlocks(generation, tuple(remaining))

    def extended(self, block: VectorBlock) -> VectorBlocks:
        if self.blocks and len(self.blocks[-1].chunks) + len(block.chunks) <= BLOCK_ROWS:
            return VectorBlocks(self.generation, (*self.blocks[:-1], self.blocks[-1].joined(block)))
        return VectorBlocks(self.generation, (*self.blocks, block))

    def best(self, query: Floats, count: int, documents: Numbers | None) -> list[int]:
        """The chunk numbers of the `count` nearest vectors, and of any ties with the last one.

        `documents` limits the search and is sorted. None searches all documents.
        """
        if not self.blocks:
            return []
        scores = np.concatenate([block.similarities(query) for block in self.blocks])
        chunks = np.concatenate([block.chunks for block in self.blocks])
        if documents is not None:
            within = np.concatenate([_is_in(block.documents, documents) for block in self.blocks])
            scores, chunks = scores[within], chunks[within]
        if len(scores) > count:
            lowest = np.partition(scores, len(scores) - count)[len(scores) - count]
            chunks = chunks[scores >= lowest]
        return [int(chunk) for chunk in chunks]


def encode_vectors(vectors: Sequence[Vector]) -> list[bytes]:
    """The stored form: half precision, with an error of less than a thousandth."""
    return [row.tobytes() for row in np.asarray(vectors, np.float32).astype("<f2")]


def _decode_vectors(bodies: Sequence[bytes]) -> Floats:
    return np.frombuffer(b"".join(bodies), "<f2").astype(np.float32).reshape(len(bodies), -1)


def to_floats(vector: Vector) -> Floats:
    return np.asarray(vector, np.float32)


def block_of(chunks: Sequence[int], documents: Sequence[int], bodies: Sequence[bytes]) -> VectorBlock:
    wide = _decode_vectors(bodies)
    largest = np.abs(wide).max(axis=1)
    scales = (np.where(largest > 0, largest, 1) / 127).astype(np.float32)
    rows = np.rint(wide / scales[:, None]).astype(np.int8)
    return VectorBlock(numbers(chunks), numbers(documents), scales, rows)


def numbers(values: Sequence[int]) -> Numbers:
    return np.asarray(values, np.int64)


def similarities(bodies: Sequence[bytes], query: Floats) -> list[float]:
    # Rounded, because the sum for the same vector differs slightly between rows.
    return [round(float(value), 6) for value in _decode_vectors(bodies) @ query]


def _is_in(values: Numbers, ordered: Numbers) -> npt.NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    result: npt.NDArray[np.bool_] = ordered[places] == values
    return result
