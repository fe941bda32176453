"""Full-text search over names, tags and descriptions, in an in-memory SQLite database."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterable
from typing import Final

from ai_platform_engineering.skills_middleware.skill import Skill
from ai_platform_engineering.text.query_words import query_words, spaced

# `word` is stemmed: "deployment" finds "deployments". `prefix` is not, so that "deploym" finds both.
_TABLES: Final = """
CREATE VIRTUAL TABLE word USING fts5 (
    name, tags, description, content = '', tokenize = "porter unicode61 remove_diacritics 2"
);
CREATE VIRTUAL TABLE prefix USING fts5 (
    name, tags, description, content = '', prefix = '2 3', tokenize = "unicode61 remove_diacritics 2"
);
"""
# Lower BM25 scores are better. A match in the name has the highest weight.
_SEARCH: Final = """
SELECT number FROM (
    SELECT rowid AS number, bm25(word, 10.0, 5.0, 1.0) AS score FROM word WHERE word MATCH :words
    UNION ALL
    SELECT rowid, bm25(prefix, 5.0, 2.0, 0.5) FROM prefix WHERE prefix MATCH :prefix
)
GROUP BY number ORDER BY sum(score), number
"""


class SearchIndex:
    """Immutable and thread-safe. A search for a common word among thousands of skills takes about 10 ms."""

    def __init__(self, skills: Iterable[Skill]) -> None:
        self._skills = sorted(skills, key=lambda skill: skill.name)
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        weakref.finalize(self, connection.close)
        connection.executescript(_TABLES)
        rows = [
            (number, spaced(skill.name), spaced(" ".join(skill.tags)), spaced(skill.description))
            for number, skill in enumerate(self._skills)
        ]
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO word (rowid, name, tags, description) VALUES (?, ?, ?, ?)", rows)
        connection.executemany("INSERT INTO prefix (rowid, name, tags, description) VALUES (?, ?, ?, ?)", rows)
        connection.execute("COMMIT")
        self._connection = connection

    def search(self, query: str) -> list[Skill]:
        """The skills that contain a word of the query, best match first. The last word may be a prefix."""
        words = query_words(query)
        if not words:
            return []
        values = {"words": " OR ".join(map(_quoted, words)), "prefix": f"{_quoted(words[-1])}*"}
        return [self._skills[number] for (number,) in self._connection.execute(_SEARCH, values).fetchall()]


def _quoted(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'
