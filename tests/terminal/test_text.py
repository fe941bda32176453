from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.text.plain_text import one_line, split_finished
from ai_platform_engineering.utils.characters import clean


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("\x1b[31mred\x1b[0m", "[31mred[0m"),
        ("\x1b]0;title\x07x", "]0;titlex"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("\x9b2Jx\x7f", "2Jx"),
        ("\u202eevil", "evil"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_nothing_that_acts_on_a_terminal_is_left(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@settings(max_examples=60, deadline=None)
@given(st.text(), st.text())
def test_text_may_be_cleaned_in_pieces(first: str, second: str) -> None:
    assert clean(first) + clean(second) == clean(first + second)


def test_one_line() -> None:
    assert one_line(" a\n\tb\x1b ") == "a b"


@pytest.mark.parametrize(
    ("finished", "rest"),
    [
        ("", "one line"),
        ("", "a paragraph\n\n"),
        ("a paragraph\n\n", "another"),
        ("one\n\ntwo\n\n", "three"),
        ("", "- item\n\n  still the item"),
        ("", "```\ncode\n\nmore code\n"),
        ("```\ncode\n\n~~~\n\ncode\n```\n\n", "after"),
        ("", "~~~~\n~~~\n\ncode"),
    ],
)
def test_text_is_cut_only_between_blocks(finished: str, rest: str) -> None:
    assert split_finished(finished + rest) == (finished, rest)


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="a \n`-"))
def test_cutting_loses_nothing(text: str) -> None:
    assert "".join(split_finished(text)) == text
