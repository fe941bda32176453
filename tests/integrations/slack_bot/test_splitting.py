from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ai_platform_engineering.integrations.slack_bot.markdown.fences import open_at_end
from ai_platform_engineering.integrations.slack_bot.thread_view.splitting import (
    MESSAGE_LIMIT,
    MIN_LIMIT,
    cut,
    shown,
)
from tests.integrations.slack_bot.markdown import short_fragments

LIMIT = 200
HALF = LIMIT // 2
PARAGRAPH = "Some words. " * 10 + "\n\n"
texts = st.lists(short_fragments | st.sampled_from(["z" * 90, "word " * 40]), max_size=60).map("".join)


def messages(text: str, limit: int = LIMIT) -> list[tuple[int, int]]:
    """Where each message begins and ends."""
    found = []
    start = 0
    while (end := cut(text, start, limit)) is not None:
        assert end > start
        found.append((start, end))
        start = end
    return [*found, (start, len(text))]


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in messages(text)]


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(MIN_LIMIT, 300))
def test_nothing_is_lost_and_everything_fits(text: str, limit: int) -> None:
    found = messages(text, limit)
    assert "".join(text[start:end] for start, end in found) == text
    for start, end in found:
        message = shown(text, start, end, closed=True)
        assert len(message) <= limit
        assert open_at_end(message) is None


@settings(max_examples=200, deadline=None)
@given(texts, st.data())
def test_a_cut_is_not_changed_by_what_is_written_later(text: str, data: st.DataObject) -> None:
    start, end = data.draw(st.sampled_from(messages(text)))
    known = data.draw(st.integers(start, len(text)))
    early = cut(text[:known], start, LIMIT)
    if early is None:
        assert len(shown(text, start, known, closed=True)) <= LIMIT
    else:
        assert early == end


@settings(max_examples=200, deadline=None)
@given(texts, st.data())
def test_what_is_delivered_stays_in_its_message(text: str, data: st.DataObject) -> None:
    end = cut(text, 0, LIMIT)
    delivered = data.draw(st.integers(0, LIMIT))
    assume(end is not None and cut(text[:delivered], 0, LIMIT) is None)
    later = cut(text, 0, LIMIT, delivered=delivered)
    assert end is not None
    assert later is not None
    assert later == end if delivered <= end else delivered <= later
    assert len(shown(text, 0, later, closed=True)) <= LIMIT


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["", "x = 1", "    indented", "~~~", "``", "word " * 30]), min_size=1, max_size=40))
def test_code_in_several_messages_is_the_same_code(lines: list[str]) -> None:
    code = "".join(line + "\n" for line in lines)
    text = f"{PARAGRAPH}````python\n{code}````\n\n{PARAGRAPH}"
    parts = []
    for start, end in messages(text):
        tokens = MarkdownIt().parse(shown(text, start, end, closed=True))
        blocks = [token for token in tokens if token.type == "fence"]
        assert all(block.info == "python" and block.content for block in blocks)
        parts += [block.content for block in blocks]
    # In lines that are longer than a message, there is a break where they were cut.
    assert "".join(parts).replace("\n", "") == code.replace("\n", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(PARAGRAPH, PARAGRAPH, id="between paragraphs"),
        pytest.param("x" * 130 + "\n", "y" * 80, id="between lines"),
        pytest.param("x" * 130 + "\n- a\n- b\n", "- c\n  continued\n  " + "y" * 60, id="between items"),
        pytest.param("x" * 120 + "\n\n", "- item\n\n  " + "y" * 80, id="not in an item"),
        pytest.param("x" * 130 + "\n\n", "# Heading\n\n" + "y" * 80, id="before a heading"),
        pytest.param("x" * 60 + "\n\n", "# " + "y" * 60 + "\n" + "z" * 150, id="before a heading even if it is early"),
        pytest.param("x" * 130 + "\n\n", "This is it:\n\n" + "y" * 80, id="before what announces something"),
        pytest.param("x" * 130 + "\n\n", "See:\n```\n" + "y\n" * 40 + "```\n", id="before code and its heading"),
        pytest.param("x" * 100 + "\n```\nyy\n```\n", "z " * 60, id="after code"),
        pytest.param("x" * 100 + "\n\n" + "y" * 40 + "\n", "```\n" + "z\n" * 40 + "```\n", id="before code"),
        pytest.param("x" * 10 + "\n", "```py " + "title " * 50 + "\n", id="not in the line that opens code"),
        pytest.param("x" * 120 + "\n", "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 10, id="before a table"),
        pytest.param("First. " * 24, "second " * 10, id="between sentences"),
        pytest.param("文" * 150 + "。", "字" * 100, id="between sentences without spaces"),
        pytest.param("word " * 40, "word " * 10, id="between words"),
        pytest.param("word " * 39, "word - and", id="not before what would be a list"),
        pytest.param("x" * 20 + "\n", "y" * 190, id="early when there is no other place"),
        pytest.param("x" * 200, "x" * 100, id="anywhere"),
        pytest.param("  " + "x" * 198, "x" * 100, id="not after white space alone"),
        pytest.param("x" * 197, "x```" + "y" * 50, id="not where a message would begin with code"),
        pytest.param("x" * 197, "👩‍👩‍👧" * 5, id="not in a family"),
        pytest.param("x" * 199, "🇩🇪🇫🇷" * 5, id="before the flag that does not fit"),
        pytest.param("x" * 197 + "🇩🇪", "🇫🇷" * 5, id="not in a flag"),
        pytest.param("x" * 199, "\r\n" + "y" * 100, id="not in the end of a line"),
        pytest.param("x" * 199, "e\u0301" * 50, id="not before an accent"),
        pytest.param("x" * 199, "\ud83d\ude00" * 5, id="not in a pair"),
    ],
)
def test_the_best_place_is_found(before: str, after: str) -> None:
    assert cut(before + after, 0, LIMIT) == len(before)


def test_the_latest_of_equally_good_places_is_found() -> None:
    assert pieces("x" * 28 + "\n\n" + ("y" * 48 + "\n\n") * 5) == [
        "x" * 28 + "\n\n" + ("y" * 48 + "\n\n") * 3,
        ("y" * 48 + "\n\n") * 2,
    ]


def test_a_good_place_that_comes_too_early_is_not_taken() -> None:
    assert cut("x" * (HALF - 10) + "\n\n" + "word " * 50, 0, LIMIT) == HALF - 8 + 105


def test_code_is_closed_and_opened_again() -> None:
    text = "```python title\n" + "print(1)\n" * 30 + "```\n"
    first, second = messages(text)
    assert shown(text, *first, closed=True) == "```python title\n" + "print(1)\n" * 20 + "```"
    assert shown(text, *second, closed=True) == "```python title\n" + "print(1)\n" * 10 + "```\n"


def test_of_a_long_first_line_only_the_language_is_repeated() -> None:
    text = f"  ~~~yaml {'title ' * 20}\n" + "key: value\n" * 30
    assert shown(text, 150, 160, closed=True).startswith("  ~~~yaml\n")


def test_a_message_that_goes_on_is_not_closed() -> None:
    text = "~~~\nx = 1"
    assert shown(text, 0, len(text), closed=False) == text
    assert shown(text, 0, len(text), closed=True) == "~~~\nx = 1\n~~~"


def test_no_code_is_left_without_a_line() -> None:
    before = "x" * 180 + "\n\n```\n"
    assert cut(before + "y" * 100 + "\n```\n", 0, LIMIT) == 182
    assert cut("```\n" + "y" * 300, 0, LIMIT) == LIMIT - len("\n```")
    code = "```\n" + "y" * 95 + "\n" + "z" * 95 + "\n"
    assert cut(code + "```\n" + PARAGRAPH * 2, 0, LIMIT) == 100


def test_what_fits_is_not_cut() -> None:
    assert cut("x" * LIMIT, 0, LIMIT) is None
    assert cut("x" * (LIMIT + 1), 0, LIMIT) == LIMIT
    assert cut("", 0) is None


def test_a_limit_without_room_for_code_is_refused() -> None:
    with pytest.raises(ValueError, match=str(MIN_LIMIT)):
        cut("x", 0, MIN_LIMIT - 1)


def test_an_answer_of_fifty_thousand_characters() -> None:
    section = "## Step\n\n" + PARAGRAPH * 3 + "```sh\n" + "kubectl get pods\n" * 20 + "```\n\n- one\n- two\n\n"
    text = section * (50_000 // len(section))
    found = messages(text, MESSAGE_LIMIT)
    assert len(found) == 5
    assert all(text[start:].startswith(("## Step", "Some words", "```sh", "- one")) for start, _ in found)
    assert not any("Step" in text[start:end].splitlines()[-1] for start, end in found)
