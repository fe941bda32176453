"""How good a ranking is, as retrieval is judged everywhere: places that answer count 1, all others 0."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import log2
from typing import TypeVar

Item = TypeVar("Item")


def ndcg(ranking: Sequence[Item], relevant: Collection[Item], depth: int = 10) -> float:
    """What answers counts less the later it comes; 1 is the best order there can be."""
    gained = sum(1 / log2(place + 2) for place, item in enumerate(ranking[:depth]) if item in relevant)
    return gained / sum(1 / log2(place + 2) for place in range(min(depth, len(relevant))))


def recall(ranking: Sequence[Item], relevant: Collection[Item], depth: int = 10) -> float:
    """The share of what answers that is there at all."""
    return len(set(ranking[:depth]) & set(relevant)) / len(relevant)


def reciprocal_rank(ranking: Sequence[Item], relevant: Collection[Item], depth: int = 10) -> float:
    """1 where the first place answers, 1/2 where the second one is the first that does."""
    return next((1 / place for place, item in enumerate(ranking[:depth], 1) if item in relevant), 0.0)


def answered(ranking: Sequence[Item], relevant: Collection[Item], depth: int = 3) -> float:
    """Whether any of the first ones answers."""
    return float(any(item in relevant for item in ranking[:depth]))
