"""Text without thinking blocks: the same whether it comes at once or in pieces."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ai_platform_engineering.llm.thinking import VisibleText, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("  plain < text > ", "  plain < text > "),
        ("\n<Think>a</THINK>\n\nb <thinking>c</thinking> d", "b  d"),
        ("<think>never closed", ""),
        ("```\n<think>code</think>\n```\nand `</think>`", "```\n<think>code</think>\n```\nand `</think>`"),
        ("thought</think>\n\nanswer", "answer"),
        ("ends with <thin", "ends with <thin"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


PIECES = st.lists(
    st.sampled_from(
        ["<think>", "</think>", "<thinking>", "</thinking>", "<", "th", "ink>", "`", "```\n", "\n", " ", "word", "</"]
    ),
    max_size=12,
)


@given(pieces=PIECES)
@example(pieces=["```\n<think>```\n```\n</think><think>"])
def test_pieces_give_what_the_whole_text_gives(pieces: list[str]) -> None:
    message = VisibleText()
    sections: dict[int, str] = {}
    for piece in "".join(pieces):
        shown = message.feed(piece)
        sections[message.section] = sections.get(message.section, "") + shown
    sections[message.section] = sections.get(message.section, "") + message.end()
    assert sections[message.section] == visible("".join(pieces))
