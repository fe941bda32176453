"""Several rankings of the same chunks made into one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.stores.store import Hit

RRF_K: Final = 10
"""Damps the first places, so that a chunk both rankings like comes before one that only one of them loves. The usual 60
is for rankings of a thousand: in one of fifty it makes all places nearly the same, and finds fewer answers in the
first three (`benchmarks/knowledge`)."""


def fuse(*rankings: Sequence[Hit]) -> list[Hit]:
    """By reciprocal rank: what counts is the place in each ranking, as scores of two kinds do not compare.

    The score is 1 for a chunk that is first in all of them.
    """
    scores: defaultdict[str, float] = defaultdict(float)
    for ranking in rankings:
        for place, hit in enumerate(ranking):
            scores[hit.chunk_id] += (RRF_K + 1) / (RRF_K + 1 + place) / len(rankings)
    return [Hit(chunk_id, score) for chunk_id, score in sorted(scores.items(), key=lambda item: (-item[1], item[0]))]
