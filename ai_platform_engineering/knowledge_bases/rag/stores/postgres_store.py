"""The store in Postgres, which several machines can share: BM25 over postings, vectors with pgvector."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, LiteralString

from pgvector import Vector as PostgresVector
from pgvector.psycopg import register_vector

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Datasource, Document
from ai_platform_engineering.knowledge_bases.rag.stores import postgres_queries as queries
from ai_platform_engineering.knowledge_bases.rag.stores.postgres_schema import (
    MAX_INDEXED_DIMENSIONS,
    KnowledgeBaseAddress,
    ensure_model,
    model_number,
    prepare,
)
from ai_platform_engineering.knowledge_bases.rag.stores.store import (
    DocumentVersion,
    FoundChunk,
    Hit,
    KnowledgeStore,
    Scope,
    Vector,
)
from ai_platform_engineering.storage.postgres.connections import PostgresConnections
from ai_platform_engineering.storage.postgres.schema import PgConnection
from ai_platform_engineering.text.query_words import query_words

EXACT_UP_TO: Final = 5_000
"""Up to this number of vectors, all are compared, which is exact. Above it, an approximate index is used."""

_MAX_CONNECTIONS: Final = 10
_MAX_EF_SEARCH: Final = 1000

_LOCK_CLASS: Final = 0x726167
"""The first key of the advisory locks, one lock for each datasource."""

_DATASOURCES: Final[LiteralString] = """
SELECT name, origin, count(document.number), coalesce(sum(chunks), 0), max(updated)
FROM rag.datasource LEFT JOIN rag.document ON document.datasource = datasource.name
GROUP BY name ORDER BY name
"""
_PUT_DOCUMENT: Final[LiteralString] = """
INSERT INTO rag.document (id, datasource, path, title, text, link, updated, fingerprint, revision, chunks)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET
    datasource = excluded.datasource, path = excluded.path, title = excluded.title, text = excluded.text,
    link = excluded.link, updated = excluded.updated, fingerprint = excluded.fingerprint,
    revision = excluded.revision, chunks = excluded.chunks, length = 0
RETURNING number
"""
_PUT_CHUNKS: Final[LiteralString] = """
INSERT INTO rag.chunk (document, place, section, text)
SELECT %s, * FROM unnest(%s::int[], %s::text[], %s::text[])
RETURNING place, number
"""
# A word in the title counts four times, in a heading twice.
_PUT_POSTINGS: Final[LiteralString] = """
WITH occurrence AS (
    SELECT chunk.number, word.lexeme, cardinality(word.positions) AS count, (
        SELECT sum(CASE weight WHEN 'A' THEN 4 WHEN 'B' THEN 2 ELSE 1 END) FROM unnest(word.weights) AS weight
    ) AS frequency
    FROM unnest(%(numbers)s::bigint[], %(sections)s::text[], %(texts)s::text[]) AS chunk (number, section, text),
    unnest(
        setweight(to_tsvector('pg_catalog.english', %(title)s), 'A')
        || setweight(to_tsvector('pg_catalog.english', chunk.section), 'B')
        || to_tsvector('pg_catalog.english', chunk.text)
    ) AS word
), posting AS (
    INSERT INTO rag.posting (chunk, frequency, length, term)
    SELECT number, frequency, sum(count) OVER (PARTITION BY number), lexeme FROM occurrence
    RETURNING chunk, length
)
UPDATE rag.document
SET length = (SELECT coalesce(sum(length), 0) FROM (SELECT DISTINCT chunk, length FROM posting) AS chunk)
WHERE number = %(document)s
"""
_PUT_VECTORS: Final[LiteralString] = """
INSERT INTO rag.embedding (model, chunk, vector) SELECT %s, * FROM unnest(%s::bigint[], %s::vector[])
"""
_FOUND: Final[LiteralString] = """
SELECT document.id, chunk.place, chunk.section, chunk.text, document.datasource, document.title, document.link,
    document.updated
FROM unnest(%s::text[], %s::int[]) WITH ORDINALITY AS wanted (id, place, number)
JOIN rag.document ON document.id = wanted.id
JOIN rag.chunk ON chunk.document = document.number AND chunk.place = wanted.place
ORDER BY wanted.number
"""


class PostgresKnowledgeStore(KnowledgeStore):
    def __init__(self, url: str, *, exact_up_to: int = EXACT_UP_TO) -> None:
        address = KnowledgeBaseAddress(url)
        prepare(address)
        self._exact_up_to = exact_up_to
        self._connections = PostgresConnections(address, _MAX_CONNECTIONS, configure=register_vector)

    def datasources(self) -> list[Datasource]:
        with self._connections.connection() as connection:
            rows = connection.execute(_DATASOURCES).fetchall()
        return [
            Datasource(name, origin, documents, chunks, _in_utc(updated))
            for name, origin, documents, chunks, updated in rows
        ]

    def versions(self, datasource: str) -> Mapping[str, DocumentVersion]:
        with self._connections.connection() as connection:
            rows = connection.execute(
                "SELECT id, fingerprint, revision FROM rag.document WHERE datasource = %s", [datasource]
            ).fetchall()
        return {document_id: DocumentVersion(fingerprint, revision) for document_id, fingerprint, revision in rows}

    def put(
        self,
        document: Document,
        version: DocumentVersion,
        chunks: Sequence[Chunk],
        vectors: Sequence[Vector] | None,
        model: str,
    ) -> None:
        encoded = [_to_postgres(vector) for vector in ([] if vectors is None else vectors)]
        if vectors is not None and len(encoded) != len(chunks):
            raise ValueError(f"{len(encoded)} vectors for {len(chunks)} chunks of {document.document_id}")
        model_id = None
        if encoded:
            with self._connections.connection() as connection:
                model_id = ensure_model(connection, model, encoded[0].dimensions())

        with self._connections.writing() as connection:
            number = _put_document(connection, document, version, len(chunks))
            numbers = _put_chunks(connection, number, document, chunks)
            if encoded:
                connection.execute(_PUT_VECTORS, [model_id, numbers, encoded])

    def update_version(self, document_id: str, version: DocumentVersion) -> None:
        with self._connections.connection() as connection:
            connection.execute(
                "UPDATE rag.document SET fingerprint = %s, revision = %s WHERE id = %s",
                [version.fingerprint, version.revision, document_id],
            )

    def set_origin(self, datasource: str, origin: str) -> None:
        with self._connections.connection() as connection:
            connection.execute(
                "INSERT INTO rag.datasource VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET origin = excluded.origin",
                [datasource, origin],
            )

    def remove(self, document_ids: Collection[str]) -> None:
        with self._connections.writing() as connection:
            # Rows are locked in one order, so that two processes that remove the same documents cannot deadlock.
            rows = connection.execute(
                "SELECT number FROM rag.document WHERE id = ANY(%s) ORDER BY number FOR UPDATE", [list(document_ids)]
            ).fetchall()
            _remove_documents(connection, [number for (number,) in rows])

    def remove_datasource(self, name: str) -> bool:
        with self._connections.writing() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK_CLASS, name])
            rows = connection.execute(
                "SELECT number FROM rag.document WHERE datasource = %s ORDER BY number FOR UPDATE", [name]
            ).fetchall()
            _remove_documents(connection, [number for (number,) in rows])
            return connection.execute("DELETE FROM rag.datasource WHERE name = %s", [name]).rowcount > 0

    def document(self, document_id: str) -> Document | None:
        with self._connections.connection() as connection:
            row = connection.execute(
                "SELECT datasource, path, title, text, link, updated FROM rag.document WHERE id = %s", [document_id]
            ).fetchone()
        if row is None:
            return None
        datasource, path, title, text, link, updated = row
        return Document(datasource, path, title, text, link, _in_utc(updated))

    def lexical(self, query: str, count: int, scope: Scope) -> list[Hit]:
        words = queries.plain_words(" ".join(query_words(query)))
        if not words or count < 1:
            return []
        values = {**queries.scope_values(scope), "words": words, "count": count}
        with self._connections.connection() as connection:
            rows = connection.execute(queries.lexical(scope), values).fetchall()
        return [Hit(chunk_id, score) for chunk_id, score in rows]

    def nearest(self, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        if count < 1:
            return []
        encoded = _to_postgres(vector)
        dimensions = encoded.dimensions()
        values = {**queries.scope_values(scope), "vector": encoded, "count": count}
        with self._connections.connection() as connection:
            number = model_number(connection, model, dimensions)
            if number is None:
                return []
            ((in_scope,),) = connection.execute(queries.chunks_in(scope), values).fetchall()
            if dimensions > MAX_INDEXED_DIMENSIONS or in_scope <= self._exact_up_to:
                query = queries.nearest_exact(number, scope)
                rows = connection.execute(query, {**values, "candidates": count}).fetchall()
            else:
                rows = _search_index(connection, number, dimensions, scope, count, values)
        return [Hit(chunk_id, similarity) for chunk_id, similarity in rows]

    def optimize(self) -> None:
        # Autovacuum does this too, but later. Until then, a keyword search takes twenty times as long.
        with self._connections.connection() as connection:
            connection.execute("VACUUM (ANALYZE) rag.posting, rag.chunk, rag.document, rag.embedding")

    def load_chunks(self, chunk_ids: Sequence[str]) -> list[FoundChunk]:
        wanted = [
            (document_id, int(place))
            for document_id, _, place in (chunk_id.rpartition("#") for chunk_id in chunk_ids)
            if place.isascii() and place.isdigit() and len(place) < 10
        ]
        with self._connections.connection() as connection:
            rows = connection.execute(
                _FOUND, [[document_id for document_id, _ in wanted], [place for _, place in wanted]]
            ).fetchall()
        return [
            FoundChunk(Chunk(document_id, place, section, text), datasource, title, link, _in_utc(updated))
            for document_id, place, section, text, datasource, title, link, updated in rows
        ]

    def close(self) -> None:
        self._connections.close()


def _put_document(connection: PgConnection, document: Document, version: DocumentVersion, chunks: int) -> int:
    """Insert or update the row of the document, and remove its chunks. Returns its number."""
    # A shared lock: others can write to the datasource at the same time, but not remove it.
    connection.execute("SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s))", [_LOCK_CLASS, document.datasource])
    connection.execute(
        "INSERT INTO rag.datasource (name) VALUES (%s) ON CONFLICT (name) DO NOTHING", [document.datasource]
    )
    ((number,),) = connection.execute(
        _PUT_DOCUMENT,
        [
            document.document_id,
            document.datasource,
            document.path,
            document.title,
            document.text,
            document.link,
            queries.in_utc(document.updated),
            version.fingerprint,
            version.revision,
            chunks,
        ],
    ).fetchall()
    _remove_chunks(connection, [number])
    return int(number)


def _put_chunks(connection: PgConnection, number: int, document: Document, chunks: Sequence[Chunk]) -> list[int]:
    """Insert the chunks and their postings. Returns the numbers of the chunks."""
    columns = [[chunk.index for chunk in chunks], [chunk.section for chunk in chunks], [chunk.text for chunk in chunks]]
    numbers: dict[int, int] = dict(connection.execute(_PUT_CHUNKS, [number, *columns]).fetchall())
    in_order = [numbers[chunk.index] for chunk in chunks]
    connection.execute(
        _PUT_POSTINGS,
        {
            "document": number,
            "title": queries.plain_words(document.title),
            "numbers": in_order,
            "sections": [queries.plain_words(chunk.section) for chunk in chunks],
            "texts": [queries.plain_words(chunk.text) for chunk in chunks],
        },
    )
    return in_order


def _remove_documents(connection: PgConnection, numbers: list[int]) -> None:
    _remove_chunks(connection, numbers)
    connection.execute("DELETE FROM rag.document WHERE number = ANY(%s)", [numbers])


def _remove_chunks(connection: PgConnection, documents: list[int]) -> None:
    connection.execute(
        "DELETE FROM rag.posting USING rag.chunk WHERE posting.chunk = chunk.number AND chunk.document = ANY(%s)",
        [documents],
    )
    connection.execute("DELETE FROM rag.chunk WHERE document = ANY(%s)", [documents])


def _search_index(
    connection: PgConnection, model: int, dimensions: int, scope: Scope, count: int, values: Mapping[str, object]
) -> list[tuple[str, float]]:
    with connection.transaction():
        # With an iterative scan, the index goes on until it has enough vectors in the scope. It returns them in relaxed
        # order, so more are requested than needed and then sorted by exact distance.
        connection.execute(
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true), "
            "set_config('hnsw.max_scan_tuples', '200000', true), set_config('hnsw.scan_mem_multiplier', '16', true)",
            [str(min(2 * count + 50, _MAX_EF_SEARCH))],
        )
        query = queries.nearest_indexed(model, dimensions, scope)
        return connection.execute(query, {**values, "candidates": 2 * count}).fetchall()


def _to_postgres(vector: Vector) -> PostgresVector:
    return PostgresVector(list(vector))


def _in_utc(stored: datetime | None) -> datetime | None:
    return None if stored is None else stored.astimezone(UTC)
