"""The words of a question that are worth looking for."""

from __future__ import annotations

import re
from typing import Final

MOST_WORDS: Final = 64
"""Of a text that was pasted whole, the first words say what it is about; every further one costs a scan."""

_RUN: Final = re.compile(r"\w+(?:[^\w\s]+\w+)*")
_WORD: Final = re.compile(r"[^\W_]+")

_STOP_WORDS: Final = frozenset(
    """
    a about all am an and any are as at be been but by can could did do does doing don for from get give had has have
    how i if in into is isn it its just let like me my need no not of on or our out please s shall should show so some
    t tell that the their them then there these they this those to up us want was we were what when where which who why
    will with would you your
    """.split()  # noqa: SIM905 - a list of a hundred quoted words is not easier to read
)


def words_of(text: str) -> list[str]:
    """Lower-case words, as a full-text index sees them: `RAG_SERVER_URL` is three."""
    return _WORD.findall(text.lower())


def query_words(query: str) -> list[str]:
    """Each word once, in order, without those that any question has; a query of nothing else keeps them."""
    words = list(dict.fromkeys(words_of(query)))
    return ([word for word in words if word not in _STOP_WORDS] or words)[:MOST_WORDS]


def query_names(query: str) -> list[list[str]]:
    """Words that were written as one (`RAG_SERVER_URL`, `docs/deploy.md`): found as written they mean more."""
    runs = dict.fromkeys(tuple(words_of(run)) for run in _RUN.findall(query))
    return [list(run) for run in runs if len(run) > 1][:MOST_WORDS]
