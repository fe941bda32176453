"""The SQL of the searches in Postgres. Pure functions; `postgres_store.py` runs the queries."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, LiteralString

from psycopg import sql

from ai_platform_engineering.knowledge_bases.rag.stores.postgres_schema import indexed_type
from ai_platform_engineering.knowledge_bases.rag.stores.store import Scope
from ai_platform_engineering.text.query_words import words_of

_CONDITIONS: Final[Mapping[str, LiteralString]] = {
    "datasource": "document.datasource = %(datasource)s",
    "document_id": "document.id = %(document_id)s",
    "path_prefix": "starts_with(document.path, %(path_prefix)s)",
    "updated_after": "document.updated > %(updated_after)s",
    "visible": "document.datasource = ANY(%(visible)s)",
}
_SCOPED_CHUNKS: Final[LiteralString] = """
AND {chunk} IN (
    SELECT chunk.number FROM rag.chunk JOIN rag.document ON document.number = chunk.document WHERE {conditions}
)
"""
# BM25 with the usual constants, k1 = 1.2 and b = 0.75. Factors that are the same for all postings of a word are
# computed once. float8 is explicit, because Postgres takes a plain 0.5 for a slow numeric. Scores are rounded, because
# the order of the terms changes a sum slightly, and chunks with the same words must get the same score. `best` keeps
# only chunks that can be among the first, with ties: ids are fetched only for these, and sorting them is faster than
# sorting all.
_LEXICAL: Final[LiteralString] = """
WITH total AS MATERIALIZED (
    SELECT sum(chunks)::float8 AS chunks, 1.2 * 0.75 * sum(chunks)::float8 / nullif(sum(length), 0) AS by_length
    FROM rag.document
), counted AS MATERIALIZED (
    SELECT lexeme AS term, (SELECT count(*)::float8 FROM rag.posting WHERE posting.term = lexeme) AS chunks
    FROM unnest(to_tsvector('pg_catalog.english', %(words)s))
), word AS MATERIALIZED (
    SELECT term, 2.2 * ln(1 + (total.chunks - counted.chunks + 0.5) / (counted.chunks + 0.5)) AS weight
    FROM counted CROSS JOIN total
), scored AS MATERIALIZED (
    SELECT posting.chunk, round(1e9::float8 * sum(
        word.weight * posting.frequency / (posting.frequency + 0.3::float8 + total.by_length * posting.length)
    )) / 1e9::float8 AS score
    FROM total CROSS JOIN word JOIN rag.posting ON posting.term = word.term
    WHERE true {scope}
    GROUP BY posting.chunk
), best AS MATERIALIZED (
    SELECT chunk, score FROM scored
    WHERE score >= coalesce((SELECT score FROM scored ORDER BY score DESC LIMIT 1 OFFSET %(count)s - 1), 0)
    ORDER BY score DESC FETCH FIRST %(count)s ROWS WITH TIES
)
SELECT document.id || '#' || chunk.place AS chunk_id, best.score
FROM best
JOIN rag.chunk ON chunk.number = best.chunk
JOIN rag.document ON document.number = chunk.document
ORDER BY best.score DESC, chunk_id LIMIT %(count)s
"""
_NEAREST: Final[LiteralString] = """
WITH near AS MATERIALIZED (
    SELECT embedding.chunk, embedding.vector FROM rag.embedding
    WHERE embedding.model = {model} {scope}
    ORDER BY {distance} FETCH FIRST %(candidates)s ROWS WITH TIES
), compared AS MATERIALIZED (
    SELECT near.chunk, near.vector <=> %(vector)s AS distance FROM near
)
SELECT document.id || '#' || chunk.place AS chunk_id, 1 - compared.distance
FROM compared
JOIN rag.chunk ON chunk.number = compared.chunk
JOIN rag.document ON document.number = chunk.document
WHERE compared.distance <> 'NaN'
ORDER BY compared.distance, chunk_id LIMIT %(count)s
"""


def lexical(scope: Scope) -> sql.Composed:
    return sql.SQL(_LEXICAL).format(scope=_scoped("posting.chunk", scope))


def nearest_exact(model: int, scope: Scope) -> sql.Composed:
    """Compares with every vector in the scope."""
    return _nearest(model, scope, sql.SQL("embedding.vector <=> %(vector)s"))


def nearest_indexed(model: int, dimensions: int, scope: Scope) -> sql.Composed:
    """Uses the same expression as the model's index, so that Postgres uses the index. The number of the model is a
    literal: a generic plan for a parameter could not use a partial index."""
    type_ = indexed_type(dimensions)
    distance = sql.SQL("embedding.vector::{type} <=> %(vector)s::{type}").format(type=type_)
    return _nearest(model, scope, distance)


def chunks_in(scope: Scope) -> sql.Composed:
    return sql.SQL("SELECT coalesce(sum(chunks), 0) FROM rag.document WHERE {}").format(_conditions(scope))


def scope_values(scope: Scope) -> dict[str, Any]:
    return {
        "datasource": scope.datasource,
        "document_id": scope.document_id,
        "path_prefix": scope.path_prefix,
        "updated_after": in_utc(scope.updated_after),
        "visible": None if scope.visible is None else [*scope.visible],
    }


def plain_words(text: str) -> str:
    """Words between spaces and without accents. Otherwise, Postgres recognizes URLs, files and version numbers, which
    could only be found as a whole."""
    if not text.isascii():
        text = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    return " ".join(words_of(text))


def in_utc(time: datetime | None) -> datetime | None:
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


def _nearest(model: int, scope: Scope, distance: sql.Composable) -> sql.Composed:
    return sql.SQL(_NEAREST).format(
        model=sql.Literal(model), scope=_scoped("embedding.chunk", scope), distance=distance
    )


def _scoped(chunk: LiteralString, scope: Scope) -> sql.Composable:
    if scope == Scope():
        return sql.SQL("")
    return sql.SQL(_SCOPED_CHUNKS).format(chunk=sql.SQL(chunk), conditions=_conditions(scope))


def _conditions(scope: Scope) -> sql.Composed:
    conditions = [sql.SQL(text) for name, text in _CONDITIONS.items() if getattr(scope, name) is not None]
    return sql.SQL(" AND ").join([sql.SQL("true"), *conditions])
