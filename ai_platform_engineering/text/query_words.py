"""The words of a text as the full-text index sees them, and the search words of a query.

Japanese and Chinese are written without spaces: there, each pair of neighbouring characters is a word, in the index and
in the query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

MAX_WORDS: Final = 64
"""Limit for long pasted texts: their first words carry the topic, and each word costs an index scan."""

_RUN: Final = re.compile(r"\w+(?:[^\w\s]+\w+)*")
_WORD: Final = re.compile(r"[^\W_]+")
_UNSPACED_SIGNS: Final = (
    r"\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_UNSPACED: Final = re.compile(f"[{_UNSPACED_SIGNS}]+")
_PIECE: Final = re.compile(rf"(?P<unspaced>[{_UNSPACED_SIGNS}]+)|[^\W_{_UNSPACED_SIGNS}]+")
_PAIR: Final = 2

_STOP_WORDS: Final = frozenset(
    """
    a about all am an and any are as at be been but by can could did do does doing don for from get give had has have
    how i if in into is isn it its just let like me my need no not of on or our out please s shall should show so some
    t tell that the their them then there these they this those to up us want was we were what when where which who why
    will with would you your
    """.split()  # noqa: SIM905 - a list of a hundred quoted words is not easier to read
)


def words_of(text: str) -> list[str]:
    """Lower-case words, as a full-text index sees them: `RAG_SERVER_URL` is three words."""
    text = text.lower()
    if text.isascii() or not _UNSPACED.search(text):
        return _WORD.findall(text)
    return [text[start:end] for start, end in word_spans(text)]


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each word; pairs of unspaced characters overlap."""
    for piece in _PIECE.finditer(text):
        start, end = piece.span()
        if piece["unspaced"] and end - start > _PAIR:
            yield from ((place, place + _PAIR) for place in range(start, end - 1))
        else:
            yield start, end


def spaced(text: str) -> str:
    """The text with spaces between the words of unspaced scripts, for an index that splits at spaces."""
    if text.isascii() or not _UNSPACED.search(text):
        return text
    return _UNSPACED.sub(lambda run: f" {' '.join(words_of(run[0]))} ", text)


def query_words(query: str) -> list[str]:
    """Each word once, in order, without stop words; a query of stop words only keeps them."""
    words = list(dict.fromkeys(words_of(query)))
    return ([word for word in words if word not in _STOP_WORDS] or words)[:MAX_WORDS]


def query_identifiers(query: str) -> list[list[str]]:
    """The words of each compound identifier (`RAG_SERVER_URL`, `docs/deploy.md`): a match as a phrase ranks higher."""
    runs = dict.fromkeys(tuple(words_of(run)) for run in _RUN.findall(query))
    return [list(run) for run in runs if len(run) > 1][:MAX_WORDS]
