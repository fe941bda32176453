"""The part of a text that shows why it was found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.knowledge_bases.rag.snippets import snippet

FILLER = "Nothing of interest is said in this sentence about anything. " * 20


def test_marks_what_was_found_in_text_without_spaces() -> None:
    text = "ゲートウェイを再起動するには、gatewayctl を使います。"
    assert snippet(text, "再起動の gatewayctl") == "ゲートウェイを**再起動**するには、**gatewayctl** を使います。"


def test_a_short_text_is_shown_whole() -> None:
    assert snippet("Set the port to 8000.", "which port?") == "Set the **port** to 8000."


def test_other_forms_of_a_word_are_marked() -> None:
    assert (
        snippet("Deployments are DEPLOYED by deploying.", "deploy") == "Deployments are **DEPLOYED** by **deploying**."
    )


def test_the_words_of_any_question_are_not_marked() -> None:
    assert snippet("How it is: the cache is cold.", "how is the cache?") == "How it is: the **cache** is cold."


def test_parts_of_words_are_not_marked() -> None:
    assert snippet("A portal and a port.", "port") == "A portal and a **port**."


def test_names_are_marked_as_one() -> None:
    assert snippet("Set RAG_SERVER_URL or see docs/deploy.md now.", "RAG_SERVER_URL docs/deploy.md") == (
        "Set **RAG_SERVER_URL** or see **docs/deploy.md** now."
    )


def test_what_is_bold_already_is_not_marked_twice() -> None:
    assert snippet("The **port** is 8000.", "port") == "The **port** is 8000."


def test_the_place_with_the_most_words_is_shown() -> None:
    text = f"{FILLER}One port here. {FILLER}The port of the supervisor is 8000. {FILLER}"
    shown = snippet(text, "port of the supervisor", 80)
    assert "The **port** of the **supervisor** is 8000." in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


def test_different_words_count_more_than_the_same_again() -> None:
    text = f"port port port port. {FILLER}the supervisor's port. {FILLER}"
    assert "**supervisor**'s **port**" in snippet(text, "supervisor port", 60)


def test_without_a_match_it_is_the_beginning() -> None:
    assert snippet(FILLER, "zebra", 40) == "Nothing of interest is said in this…"
    assert snippet("", "zebra") == ""


def test_no_mark_of_a_cut_where_nothing_is_cut() -> None:
    assert snippet("  The port.  \n", "port", 11) == "The **port**."
    assert snippet(f"The port. {FILLER}", "port", 30).startswith("The **port**.")
    assert snippet(f"{FILLER}The port.", "port", 30).endswith("The **port**.")


def test_a_run_without_spaces_is_cut_somewhere() -> None:
    assert snippet("x" * 1000, "port", 50) == "x" * 50 + "…"


@given(
    st.text(st.sampled_from("abc deploy\n.-_…*İßé日"), max_size=400),
    st.text(st.sampled_from("abc deploy"), max_size=20),
    st.integers(1, 120),
)
def test_whatever_the_text_it_is_a_part_of_it(text: str, query: str, length: int) -> None:
    shown = snippet(text, query, length)
    plain = shown.replace("*", "").replace("…", "").strip()
    assert plain in text.replace("*", "").replace("…", "")
    assert len(plain) <= max(length, max((len(word) for word in text.split()), default=0))


@pytest.mark.parametrize("length", [20, 60, 300])
@given(st.lists(st.sampled_from(["pods", "nodes", "are", "scheduled", "elsewhere"]), min_size=1, max_size=200))
def test_words_are_whole(length: int, words: list[str]) -> None:
    shown = snippet(" ".join(words), "scheduled pods", length)
    assert set(shown.replace("*", "").replace("…", "").split()) <= set(words)
