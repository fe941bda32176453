"""The words of a question, and their stems."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.knowledge_bases.rag.stems import stem
from ai_platform_engineering.text.query_words import (
    MAX_WORDS,
    query_identifiers,
    query_words,
    spaced,
    words_of,
)

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("How do I run ArgoCD remotely?", ["run", "argocd", "remotely"]),
        ("what is it?", ["what", "is", "it"]),
        ("RAG_SERVER_URL and rag_server_url", ["rag", "server", "url"]),
        ("", []),
        ("?!", []),
        ("Größe ändern", ["größe", "ändern"]),
    ],
)
def test_a_question_without_what_every_question_has(query: str, words: list[str]) -> None:
    assert query_words(query) == words


def test_what_was_written_as_one_stays_together() -> None:
    assert query_identifiers("set RAG_SERVER_URL in docs/deploy.md, not `a`") == [
        ["rag", "server", "url"],
        ["docs", "deploy", "md"],
    ]
    assert query_identifiers("plain words only.") == []


def test_a_pasted_text_is_cut() -> None:
    assert len(query_words(" ".join(f"word{number}" for number in range(1000)))) == MAX_WORDS


@given(st.text())
def test_words_are_lower_case_letters_and_digits(text: str) -> None:
    for word in words_of(text):
        assert word
        assert not re.search(r"[\s_\"'()*:^]", word)


def test_stems_are_those_of_the_index() -> None:
    texts = [path.read_text() for path in [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")]]
    words = sorted({word for text in texts for word in re.findall("[a-z]+", text.lower())})
    endings = [
        "ational",
        "ization",
        "iveness",
        "fulness",
        "eed",
        "ed",
        "ing",
        "ies",
        "sses",
        "ement",
        "ion",
        "able",
        "y",
    ]
    words += [*endings, *(vowel + ending for vowel in "aeiouy" for ending in endings)]
    words += [word + ending for word in words[::7] for ending in endings if word + ending not in words]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5 (word, tokenize = 'porter unicode61')")
        connection.execute("CREATE VIRTUAL TABLE terms USING fts5vocab (words, instance)")
        connection.executemany("INSERT INTO words (rowid, word) VALUES (?, ?)", enumerate(words))
        terms = {words[number]: term for term, number in connection.execute("SELECT term, doc FROM terms")}
    assert len(terms) > 2000
    assert {word: stem(word) for word in terms} == terms


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("再起動", ["再起", "起動"]),
        ("gatewayctlを再起動", ["gatewayctl", "を再", "再起", "起動"]),
        ("ログ、確認。X1", ["ログ", "確認", "x1"]),
        ("网关 重 启动", ["网关", "重", "启动"]),
        ("Über RAG_URL", ["über", "rag", "url"]),
    ],
)
def test_text_without_spaces_has_its_signs_in_pairs(text: str, words: list[str]) -> None:
    assert words_of(text) == words
    assert words_of(spaced(text)) == words
