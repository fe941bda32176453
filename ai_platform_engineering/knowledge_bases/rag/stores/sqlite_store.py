"""The store in one SQLite file: documents and chunks, words in an FTS5 index, vectors beside them.

Vectors are compared in memory, so each process that searches holds a copy of them: about 40 MB for 100,000 chunks of
the offline model.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Datasource, Document
from ai_platform_engineering.knowledge_bases.rag.query_words import query_names, query_words
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_connections import Connections
from ai_platform_engineering.knowledge_bases.rag.stores.store import (
    FoundChunk,
    Hit,
    Known,
    Scope,
    Store,
    Vector,
)

if TYPE_CHECKING:
    from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_vectors import LoadedVectors

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_WEIGHTS: Final = "4.0, 2.0, 1.0"
"""What a word counts in the title, in the headings and in the text."""

_CANDIDATES: Final = 4
"""How many times the vectors that are asked for are looked at in full precision."""

_DATASOURCES: Final = """
SELECT datasource.name, datasource.origin, count(document.number), sum(chunks.count), max(document.updated_us)
FROM datasource
LEFT JOIN document ON document.datasource = datasource.name
LEFT JOIN (SELECT document, count(*) AS count FROM chunk GROUP BY document) AS chunks
    ON chunks.document = document.number
GROUP BY datasource.name ORDER BY datasource.name
"""
_DOCUMENT: Final = """
SELECT datasource, path, title, document_text.text, link, updated_us
FROM document JOIN document_text ON document_text.document = document.number WHERE id = ?
"""
_FOUND: Final = """
SELECT chunk.section, chunk.text, document.datasource, document.title, document.link, document.updated_us
FROM document JOIN chunk ON chunk.document = document.number WHERE document.id = ? AND chunk.place = ?
"""
# The edge keeps the join to those that can be among the first, with all that score the same as the last of them.
_LEXICAL: Final = """
WITH scored AS MATERIALIZED (
    SELECT rowid AS number, bm25(words, {weights}) AS score FROM words WHERE words MATCH ? {scope}
)
SELECT document.id || '#' || chunk.place AS chunk_id, -scored.score
FROM scored
JOIN chunk ON chunk.number = scored.number
JOIN document ON document.number = chunk.document
WHERE scored.score <= coalesce((SELECT score FROM scored ORDER BY score LIMIT 1 OFFSET ?), 0)
ORDER BY scored.score, chunk_id LIMIT ?
"""
_CANDIDATE_VECTORS: Final = """
SELECT document.id || '#' || chunk.place, vector.body
FROM json_each(?) AS wanted
JOIN vector ON vector.chunk = wanted.value
JOIN chunk ON chunk.number = vector.chunk
JOIN document ON document.number = chunk.document
"""


class SqliteStore(Store):
    def __init__(self, path: Path) -> None:
        self._connections = Connections(path)
        self._loaded: LoadedVectors | None = None
        self._loading = threading.Lock()

    def datasources(self) -> list[Datasource]:
        with self._connections.reading() as connection:
            rows = connection.execute(_DATASOURCES).fetchall()
        return [
            Datasource(name, origin, documents, chunks or 0, _time(updated))
            for name, origin, documents, chunks, updated in rows
        ]

    def known(self, datasource: str) -> Mapping[str, Known]:
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT id, fingerprint, revision FROM document WHERE datasource = ?", (datasource,)
            ).fetchall()
        return {document_id: Known(fingerprint, revision) for document_id, fingerprint, revision in rows}

    def put(
        self, document: Document, known: Known, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None, model: str
    ) -> None:
        bodies = [] if vectors is None or not len(vectors) else _packed(vectors)
        if vectors is not None and len(bodies) != len(chunks):
            raise ValueError(f"{len(bodies)} vectors for {len(chunks)} chunks of {document.document_id}")
        with self._connections.writing() as connection:
            number = _put_document(connection, document, known)
            connection.executemany(
                "INSERT INTO chunk (document, place, section, text) VALUES (?, ?, ?, ?)",
                [(number, chunk.index, chunk.section, chunk.text) for chunk in chunks],
            )
            connection.execute(
                "INSERT INTO words (rowid, title, section, text) "
                "SELECT number, title, section, text FROM chunk_words WHERE document = ?",
                (number,),
            )
            if bodies:
                _put_vectors(connection, number, [chunk.index for chunk in chunks], bodies, model)
            _changed(connection)

    def note_revision(self, document_id: str, known: Known) -> None:
        with self._connections.writing() as connection:
            connection.execute(
                "UPDATE document SET fingerprint = ?, revision = ? WHERE id = ?",
                (known.fingerprint, known.revision, document_id),
            )

    def note_origin(self, datasource: str, origin: str) -> None:
        with self._connections.writing() as connection:
            connection.execute(
                "INSERT INTO datasource (name, origin) VALUES (?, ?) "
                "ON CONFLICT DO UPDATE SET origin = excluded.origin",
                (datasource, origin),
            )

    def remove(self, document_ids: Collection[str]) -> None:
        if not document_ids:
            return
        with self._connections.writing() as connection:
            for document_id in document_ids:
                row = connection.execute("SELECT number FROM document WHERE id = ?", (document_id,)).fetchone()
                if row is not None:
                    _remove_document(connection, row[0])
            _changed(connection)

    def remove_datasource(self, name: str) -> bool:
        with self._connections.writing() as connection:
            rows = connection.execute("SELECT number FROM document WHERE datasource = ?", (name,)).fetchall()
            for (number,) in rows:
                _remove_document(connection, number)
            _changed(connection)
            return connection.execute("DELETE FROM datasource WHERE name = ?", (name,)).rowcount > 0

    def document(self, document_id: str) -> Document | None:
        with self._connections.reading() as connection:
            row = connection.execute(_DOCUMENT, (document_id,)).fetchone()
        if row is None:
            return None
        datasource, path, title, text, link, updated = row
        return Document(datasource, path, title, text, link, _time(updated))

    def lexical(self, query: str, count: int, scope: Scope) -> list[Hit]:
        match = _match(query)
        if not match or count < 1:
            return []
        documents, values = _documents(scope)
        # The plus keeps SQLite from asking the index once per chunk of the scope.
        within = f"AND +rowid IN (SELECT number FROM chunk WHERE document IN ({documents}))" if documents else ""  # noqa: S608
        with self._connections.reading() as connection:
            rows = connection.execute(
                _LEXICAL.format(weights=_WEIGHTS, scope=within), (match, *values, count - 1, count)
            ).fetchall()
        return [Hit(chunk_id, score) for chunk_id, score in rows]

    def nearest(self, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        if count < 1:
            return []
        from ai_platform_engineering.knowledge_bases.rag.stores.vector_blocks import (  # noqa: PLC0415
            numbers,
            similarities,
            single,
        )

        query = single(vector)
        with self._connections.reading() as connection:
            row = connection.execute(
                "SELECT number FROM model WHERE name = ? AND dimensions = ?", (model, len(query))
            ).fetchone()
            if row is None:
                return []
            within, values = _documents(scope)
            documents = None
            if within:
                documents = numbers([number for (number,) in connection.execute(within, values)])
            best = self._vectors().current(connection, row[0]).best(query, count * _CANDIDATES, documents)
            candidates = connection.execute(_CANDIDATE_VECTORS, (json.dumps(best),)).fetchall()
        if not candidates:
            return []
        scores = similarities([body for _, body in candidates], query)
        hits = [Hit(chunk_id, score) for (chunk_id, _), score in zip(candidates, scores, strict=True)]
        return sorted(hits, key=lambda hit: (-hit.score, hit.chunk_id))[:count]

    def found(self, chunk_ids: Sequence[str]) -> list[FoundChunk]:
        found = []
        with self._connections.reading() as connection:
            for chunk_id in chunk_ids:
                document_id, _, place = chunk_id.rpartition("#")
                row = connection.execute(_FOUND, (document_id, place)).fetchone()
                if row is not None:
                    section, text, datasource, title, link, updated = row
                    chunk = Chunk(document_id, int(place), section, text)
                    found.append(FoundChunk(chunk, datasource, title, link, _time(updated)))
        return found

    def close(self) -> None:
        self._connections.close()
        self._loaded = None

    def _vectors(self) -> LoadedVectors:
        from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_vectors import LoadedVectors  # noqa: PLC0415

        with self._loading:
            if self._loaded is None:
                self._loaded = LoadedVectors()
            return self._loaded


def _put_document(connection: sqlite3.Connection, document: Document, known: Known) -> int:
    """The row of the document, without chunks."""
    connection.execute(
        "INSERT INTO datasource (name, origin) VALUES (?, '') ON CONFLICT DO NOTHING", (document.datasource,)
    )
    row = connection.execute("SELECT number FROM document WHERE id = ?", (document.document_id,)).fetchone()
    if row is not None:
        # Before the title changes, as the index has to be told the words that it forgets.
        _remove_chunks(connection, row[0])
    number: int = connection.execute(
        "INSERT INTO document (id, datasource, path, title, link, updated_us, fingerprint, revision) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET title = excluded.title, link = excluded.link, "
        "updated_us = excluded.updated_us, fingerprint = excluded.fingerprint, revision = excluded.revision "
        "RETURNING number",
        (
            document.document_id,
            document.datasource,
            document.path,
            document.title,
            document.link,
            _microseconds(document.updated),
            known.fingerprint,
            known.revision,
        ),
    ).fetchone()[0]
    connection.execute("INSERT OR REPLACE INTO document_text VALUES (?, ?)", (number, document.text))
    return number


def _put_vectors(
    connection: sqlite3.Connection, document: int, places: Sequence[int], bodies: Sequence[bytes], model: str
) -> None:
    dimensions = len(bodies[0]) // 2
    connection.execute("INSERT OR IGNORE INTO model (name, dimensions) VALUES (?, ?)", (model, dimensions))
    connection.executemany(
        "INSERT INTO vector (chunk, document, model, body) "
        "SELECT chunk.number, chunk.document, model.number, ? FROM chunk, model "
        "WHERE chunk.document = ? AND chunk.place = ? AND model.name = ? AND model.dimensions = ?",
        [(body, document, place, model, dimensions) for place, body in zip(places, bodies, strict=True)],
    )


def _remove_document(connection: sqlite3.Connection, number: int) -> None:
    _remove_chunks(connection, number)
    connection.execute("DELETE FROM document_text WHERE document = ?", (number,))
    connection.execute("DELETE FROM document WHERE number = ?", (number,))


def _remove_chunks(connection: sqlite3.Connection, document: int) -> None:
    connection.execute(
        "INSERT INTO words (words, rowid, title, section, text) "
        "SELECT 'delete', number, title, section, text FROM chunk_words WHERE document = ?",
        (document,),
    )
    connection.execute("DELETE FROM vector WHERE chunk IN (SELECT number FROM chunk WHERE document = ?)", (document,))
    connection.execute("DELETE FROM chunk WHERE document = ?", (document,))


def _changed(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE generation SET number = number + 1")


def _match(query: str) -> str:
    """An FTS5 expression that means the words and nothing else, whatever was typed: each is quoted."""
    phrases = [query_words(query), *query_names(query)]
    return " OR ".join([*(f'"{word}"' for word in phrases[0]), *(f'"{" ".join(name)}"' for name in phrases[1:])])


def _documents(scope: Scope) -> tuple[str, list[Any]]:
    """The query for the numbers of the documents that are meant, in order; empty for all."""
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
        values.append(_microseconds(scope.updated_after))
    if not conditions:
        return "", []
    # Only the conditions above are put together here; what was asked for is bound.
    return f"SELECT number FROM document WHERE {' AND '.join(conditions)} ORDER BY number", values  # noqa: S608


def _packed(vectors: Sequence[Vector]) -> list[bytes]:
    from ai_platform_engineering.knowledge_bases.rag.stores.vector_blocks import packed  # noqa: PLC0415

    return packed(vectors)


def _microseconds(time: datetime | None) -> int | None:
    """Of a time without a zone it is assumed that it is UTC."""
    if time is None:
        return None
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _time(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else _EPOCH + microseconds * _MICROSECOND
