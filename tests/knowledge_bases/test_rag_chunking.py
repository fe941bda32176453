"""Chunks keep the words, the order and the structure of a document."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.knowledge_bases.rag.chunking import (
    MAX_CODE_LENGTH,
    MAX_PROSE_LENGTH,
    TARGET_LENGTH,
    chunks_of,
)
from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document

WORD = re.compile(r"\w+")
SENTENCE = "The supervisor hands the request to the agent that fits it best. "


def cut(text: str) -> list[Chunk]:
    return chunks_of(Document("docs", "a.md", "A", text, "a.md"))


def texts(text: str) -> list[str]:
    return [chunk.text for chunk in cut(text)]


def test_sections_are_trails_of_headings() -> None:
    chunks = cut("# Deploy\n\nIntro.\n\n## Remote *agents*\n\nHow.\n\n# Operate\n\nLogs.\n")

    assert [(chunk.section, chunk.text) for chunk in chunks] == [
        ("Deploy", "# Deploy\n\nIntro."),
        ("Deploy > Remote agents", "## Remote *agents*\n\nHow."),
        ("Operate", "# Operate\n\nLogs."),
    ]
    assert [chunk.chunk_id for chunk in chunks] == ["docs:a.md#0", "docs:a.md#1", "docs:a.md#2"]


@pytest.mark.parametrize("text", ["", "\n", " \n\t\n", "\r\n\r\n"])
def test_nothing_gives_no_chunks(text: str) -> None:
    assert cut(text) == []


@pytest.mark.parametrize(
    ("heading", "section"),
    [
        ("Setext\n======", "Setext"),
        ("# `ENABLE_<NAME>` and [links](https://example.com/a_(b))", "ENABLE_<NAME> and links"),
        ("# Build ![badge](https://img.example.com/b.svg)", "Build"),
        ("# Install {#install}", "Install"),
        ("# R&amp;D \\*starred\\* ##", "R&D *starred*"),
        ("# snake_case_name and __bold__", "snake_case_name and bold"),
    ],
)
def test_a_section_reads_like_the_heading(heading: str, section: str) -> None:
    assert [chunk.section for chunk in cut(f"{heading}\n\nText.\n")] == [section]


def test_a_heading_without_text_goes_with_what_follows() -> None:
    chunks = cut("# Guide\n\n## Install\n\nRun it.\n\n## Empty\n")

    assert [(chunk.section, chunk.text) for chunk in chunks] == [
        ("Guide > Install", "# Guide\n\n## Install\n\nRun it."),
        ("Guide > Empty", "## Empty"),
    ]


def test_a_level_that_is_left_out_does_not_lose_the_trail() -> None:
    assert [chunk.section for chunk in cut("# A\n\na\n\n#### D\n\nd\n\n## B\n\nb\n")] == ["A", "A > D", "A > B"]


def test_headings_inside_of_code_and_quotations_are_no_sections() -> None:
    chunks = cut("# Real\n\n```sh\n# comment\nls\n```\n\n> # quoted\n\n- # listed\n")

    assert {chunk.section for chunk in chunks} == {"Real"}


def test_small_blocks_of_a_section_are_joined_up_to_the_target() -> None:
    source = "# A\n\n" + "\n\n".join([SENTENCE * 3] * 12)

    chunks = texts(source)

    assert " ".join(chunks).split() == source.split()
    assert all(TARGET_LENGTH / 2 < len(text) <= TARGET_LENGTH for text in chunks)


def test_long_prose_is_cut_between_sentences() -> None:
    chunks = texts(SENTENCE * 60)

    assert " ".join(chunks).split() == (SENTENCE * 60).split()
    assert all(len(text) <= MAX_PROSE_LENGTH for text in chunks)
    assert all(text.startswith("The supervisor") and text.endswith("best.") for text in chunks)


def test_a_list_is_cut_between_its_items() -> None:
    chunks = texts("\n".join(f"- item {number}: {SENTENCE}" for number in range(60)))

    assert len(chunks) > 3
    assert all(text.startswith("- item") and text.endswith("best.") for text in chunks)


def test_code_stays_whole_though_it_is_long() -> None:
    code = "```yaml\n" + "\n".join(f"key_{number}: value" for number in range(150)) + "\n```"
    assert MAX_PROSE_LENGTH < len(code) < MAX_CODE_LENGTH

    chunks = texts(f"# A\n\n{SENTENCE * 8}\n\nRun this:\n\n{code}\n\n{SENTENCE * 8}")

    assert sum(code in text for text in chunks) == 1
    assert next(text for text in chunks if code in text).startswith("Run this:")


@pytest.mark.parametrize(("indent", "item"), [("", ""), ("  ", "- Example:\n\n")])
def test_code_that_is_far_too_long_becomes_blocks_of_code(indent: str, item: str) -> None:
    lines = [f"{indent}step_{number}()" for number in range(1000)]
    code = "\n".join([f"{indent}```python", *lines, f"{indent}```"])

    parts = [text for text in texts(f"{item}{code}\n") if "step_" in text]

    assert len(parts) > 4
    assert all(len(text) <= MAX_PROSE_LENGTH + 300 for text in parts)
    assert all("```python" in text and text.endswith("```") for text in parts)
    assert [line for text in parts for line in text.split("\n") if "step_" in line] == lines


def test_a_long_table_is_cut_between_rows_and_keeps_its_head() -> None:
    head = "| Variable | Meaning |\n|---|---|"
    rows = [f"| `SETTING_{number}` | {SENTENCE}|" for number in range(60)]

    parts = texts("\n".join((head, *rows)))

    assert len(parts) > 3
    assert all(text.startswith(head) and len(text) < MAX_PROSE_LENGTH for text in parts)
    assert [line for text in parts for line in text.split("\n")[2:]] == rows


def test_the_head_of_a_table_does_not_stand_alone() -> None:
    head = "| Variable | Meaning |\n|---|---|"
    rows = [f"| `SETTING_{number}` | {SENTENCE * 14}|" for number in range(3)]

    parts = texts("\n".join((head, *rows, "", "After the table.")))

    assert "\n".join(parts).count(head) == len(rows)


def test_data_on_one_line_is_cut_between_its_words() -> None:
    keys = [f"readinessProbeTimeoutSeconds{number}" for number in range(500)]
    line = "{" + ",".join(f'"{key}":{{}}' for key in keys) + "}"

    chunks = texts(f"```json\n{line}\n```")

    assert [key for text in chunks for key in re.findall(r"readiness\w+", text)] == keys


def test_the_little_at_the_end_of_a_section_stays_with_it() -> None:
    chunks = texts(f"# A\n\n{SENTENCE * 12}\n\nThat is all.\n\n# B\n\nText.\n")

    assert chunks[0].endswith("That is all.")
    assert len(chunks) == 2


MARKUP = (
    *(
        "# Title\n",
        "\n\n## Two\n\n",
        "```\n",
        "~~~sh\n",
        "- item\n",
        "  - deep\n",
        "1. one\n",
        "> quoted\n",
        "Title\n===\n",
    ),
    *("|a|b|\n|-|-|\n|c|d|\n", "    indented\n", "<div>\n", "[x]: https://example.com\n", "\r\n", "***\n", "。" * 50),
    *(SENTENCE, SENTENCE * 40, "word " * 500, "x" * 100 + " ", "line\n" * 700),
)
PIECES = st.text(max_size=40) | st.text("ab c.\n`#-|>*_~=: \t1\\", max_size=40) | st.sampled_from(MARKUP)


@settings(max_examples=80, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_every_word_is_kept_in_chunks_of_bearable_size(text: str) -> None:
    chunks = cut(text)

    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.text.strip() for chunk in chunks)
    assert all(len(chunk.text) <= MAX_CODE_LENGTH + 800 for chunk in chunks)
    kept = set(WORD.findall("\n".join(chunk.text for chunk in chunks)))
    # A word without an end is data, and data is cut.
    assert {word for word in WORD.findall(text) if len(word) <= 200} <= kept
    assert chunks == cut(text)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["# A\n\n", "## B\n\n", SENTENCE, "one two\n\n", "- item\n", "word " * 300]), max_size=15)
)
def test_text_without_code_comes_back_in_order_and_once(pieces: list[str]) -> None:
    text = "".join(pieces)

    assert "".join("".join(chunk.text.split()) for chunk in cut(text)) == "".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "> " * 3000 + "deep",
        "- " * 3000 + "deep",
        "".join(f"{'  ' * depth}- item\n" for depth in range(300)),
        "[" * 50_000,
        "`" * 50_000,
        "# \n" * 5000,
        "|" * 20_000 + "\n" + "|-" * 10_000,
        "x" * 500_000,
        "<" * 50_000,
        "***\n" * 5000,
    ],
    ids=lambda text: repr(text[:6]),
)
def test_hostile_text_takes_no_more_than_moments(text: str) -> None:
    started = time.process_time()

    cut(text)

    assert time.process_time() - started < 10


def test_threads_get_the_same_chunks() -> None:
    text = "".join(f"## Part {number}\n\n| a | b |\n|---|---|\n| 1 | {SENTENCE} |\n\n" for number in range(20))
    expected = texts(text)
    together = threading.Barrier(4)

    def work(_: int) -> list[str]:
        together.wait(10)
        return texts(text)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [expected] * 4
