"""The usual metrics of retrieval quality, with binary relevance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log2
from typing import TypeVar

Item = TypeVar("Item")


def ndcg(ranking: Sequence[Item], relevant: Collection[Item], depth: int = 10) -> float:
    """Relevant items count less at later ranks. 1 is the best possible order."""
    gained = sum(1 / log2(rank + 2) for rank, item in enumerate(ranking[:depth]) if item in relevant)
    return gained / sum(1 / log2(rank + 2) for rank in range(min(depth, len(relevant))))


def recall(ranking: Sequence[Item], relevant: Collection[Item], depth: int = 10) -> float:
    """The share of the relevant items that were found."""
    return len(set(ranking[:depth]) & set(relevant)) / len(relevant)


def reciprocal_rank(ranking: Sequence[Item], relevant: Collection[Item], depth: int = 10) -> float:
    """1 if the first item is relevant, 1/2 if the second one is the first relevant item, and so on."""
    return next((1 / rank for rank, item in enumerate(ranking[:depth], 1) if item in relevant), 0.0)


def answered(ranking: Sequence[Item], relevant: Collection[Item], depth: int = 3) -> float:
    """1 if any of the first items is relevant."""
    return float(any(item in relevant for item in ranking[:depth]))
