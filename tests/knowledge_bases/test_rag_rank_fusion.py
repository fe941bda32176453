"""Several rankings made into one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.knowledge_bases.rag.searching import fuse
from ai_platform_engineering.knowledge_bases.rag.stores.store import Hit

rankings = st.lists(st.lists(st.sampled_from("abcdefghij"), unique=True), max_size=4)


def ranking(*chunk_ids: str) -> list[Hit]:
    return [Hit(chunk_id, float(-place)) for place, chunk_id in enumerate(chunk_ids)]


def order(*lists: list[Hit]) -> list[str]:
    return [hit.chunk_id for hit in fuse(*lists)]


def test_one_ranking_keeps_its_order() -> None:
    assert order(ranking("c", "a", "b")) == ["c", "a", "b"]
    assert fuse() == fuse([]) == fuse([], []) == []


def test_what_both_like_comes_before_what_one_loves() -> None:
    assert order(ranking("loved", "liked", "x"), ranking("y", "liked", "z"))[0] == "liked"


def test_scores_of_the_rankings_do_not_matter() -> None:
    low, high = [Hit("a", 0.2), Hit("b", 0.1)], [Hit("b", 9000.0), Hit("c", 8000.0)]
    assert fuse(low, high) == fuse(ranking("a", "b"), ranking("b", "c"))


def test_equals_are_ordered_by_chunk_id() -> None:
    assert order(ranking("b", "c"), ranking("a", "d")) == ["a", "b", "c", "d"]


def test_first_in_all_is_one() -> None:
    [best, *others] = fuse(ranking("a", "b"), ranking("a", "c"))
    assert best == Hit("a", pytest.approx(1.0))
    assert all(0 < other.score < 0.5 for other in others)


@given(rankings)
def test_every_hit_is_there_once_best_first(lists: list[list[str]]) -> None:
    fused = fuse(*(ranking(*chunk_ids) for chunk_ids in lists))
    assert sorted(hit.chunk_id for hit in fused) == sorted({chunk_id for chunk_ids in lists for chunk_id in chunk_ids})
    assert fused == sorted(fused, key=lambda hit: (-hit.score, hit.chunk_id))
    assert all(0 < hit.score <= 1 + 1e-9 for hit in fused)


@given(rankings)
def test_the_order_of_the_rankings_does_not_matter(lists: list[list[str]]) -> None:
    hits = [ranking(*chunk_ids) for chunk_ids in lists]
    forwards = {hit.chunk_id: hit.score for hit in fuse(*hits)}
    assert forwards == pytest.approx({hit.chunk_id: hit.score for hit in fuse(*reversed(hits))})
