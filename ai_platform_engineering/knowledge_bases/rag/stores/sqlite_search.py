"""Keyword search in the SQLite file, and the SQL of a search scope.

The cost of ranking grows with the number of chunks that contain any of the words, and a single common word is in nearly
all of them. Its weight is small, however. So the rarer words select the chunks, and all words rank them. With 100,000
chunks of real text, the first fifty results were the same, in a third of the time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from ai_platform_engineering.knowledge_bases.rag.stems import stem
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_rows import to_microseconds
from ai_platform_engineering.knowledge_bases.rag.stores.store import Hit, Scope
from ai_platform_engineering.text.query_words import query_identifiers, query_words

_WEIGHTS: Final = "4.0, 2.0, 1.0"
"""The weights of a word in the title, in the headings and in the text."""

_MAX_RANKED: Final = 10_000
"""Chunks. Ranking a thousand takes a few milliseconds."""

# The WHERE clause limits the join to chunks that can be among the first, including ties with the last one.
_LEXICAL: Final = """
WITH scored AS MATERIALIZED (
    SELECT rowid AS number, bm25(words, {weights}) AS score FROM words WHERE words MATCH ? {conditions}
)
SELECT document.id || '#' || chunk.place AS chunk_id, -scored.score
FROM scored
JOIN chunk ON chunk.number = scored.number
JOIN document ON document.number = chunk.document
WHERE scored.score <= coalesce((SELECT score FROM scored ORDER BY score LIMIT 1 OFFSET ?), 0)
ORDER BY scored.score, chunk_id LIMIT ?
"""
# The unary plus stops SQLite from running the full-text query again for each row of the list.
_AMONG: Final = "AND +rowid IN (SELECT rowid FROM words WHERE words MATCH ?)"
_WITHIN: Final = "AND +rowid IN (SELECT number FROM chunk WHERE document IN ({documents}))"


def lexical(connection: sqlite3.Connection, query: str, count: int, scope: Scope) -> list[Hit]:
    words = query_words(query)
    if not words:
        return []
    any_word = _any_of([*words, *(" ".join(name) for name in query_identifiers(query))])
    documents, values = documents_of(scope)
    within = _WITHIN.format(documents=documents) if documents else ""
    rarer = _rarer(connection, words)
    if len(rarer) < len(words):
        hits = _ranked(connection, f"{_AMONG} {within}", [any_word, _any_of(rarer), *values], count)
        # A narrow scope may not contain the rarer words at all.
        if len(hits) == count:
            return hits
    return _ranked(connection, within, [any_word, *values], count)


def documents_of(scope: Scope) -> tuple[str, list[Any]]:
    """The query for the numbers of the documents in the scope, in ascending order. Empty for all documents."""
    conditions: list[str] = []
    values: list[Any] = []
    if scope.datasource is not None:
        conditions.append("datasource = ?")
        values.append(scope.datasource)
    if scope.document_id is not None:
        conditions.append("id = ?")
        values.append(scope.document_id)
    if scope.path_prefix is not None:
        conditions.append("substr(path, 1, length(?)) = ?")
        values += [scope.path_prefix, scope.path_prefix]
    if scope.updated_after is not None:
        conditions.append("updated_us > ?")
        values.append(to_microseconds(scope.updated_after))
    if scope.visible is not None:
        conditions.append("datasource IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(scope.visible))
    if not conditions:
        return "", []
    # Only the conditions above are joined here. Values are bound.
    return f"SELECT number FROM document WHERE {' AND '.join(conditions)} ORDER BY number", values  # noqa: S608


def _ranked(connection: sqlite3.Connection, conditions: str, values: Sequence[Any], count: int) -> list[Hit]:
    statement = _LEXICAL.format(weights=_WEIGHTS, conditions=conditions)
    return [Hit(chunk_id, score) for chunk_id, score in connection.execute(statement, (*values, count - 1, count))]


def _rarer(connection: sqlite3.Connection, words: Sequence[str]) -> list[str]:
    """The words that are in few chunks: at least one that occurs, and in sum at most `_MAX_RANKED` chunks."""
    frequency = {word: _chunks_with(connection, word) for word in words}
    chosen: list[str] = []
    total = 0
    for word in sorted(words, key=lambda word: (frequency[word], word)):
        if total and total + frequency[word] > _MAX_RANKED:
            break
        chosen.append(word)
        total += frequency[word]
    return chosen


def _chunks_with(connection: sqlite3.Connection, word: str) -> int:
    row = connection.execute("SELECT doc FROM vocabulary WHERE term = ?", (stem(word),)).fetchone()
    return 0 if row is None else int(row[0])


def _any_of(phrases: Sequence[str]) -> str:
    """An FTS5 expression. Each phrase is quoted, so that no input can be an operator."""
    return " OR ".join(f'"{phrase}"' for phrase in phrases)
