"""The store in Postgres, for knowledge that several machines share: BM25 over postings, vectors with pgvector."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, LiteralString

from pgvector import Vector as PostgresVector

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Datasource, Document
from ai_platform_engineering.knowledge_bases.rag.stores import postgres_queries as queries
from ai_platform_engineering.knowledge_bases.rag.stores.postgres_address import Address
from ai_platform_engineering.knowledge_bases.rag.stores.postgres_connections import Connections
from ai_platform_engineering.knowledge_bases.rag.stores.postgres_schema import (
    MAX_INDEXED_SIZE,
    Connection,
    model_number,
    note_model,
    prepare,
)
from ai_platform_engineering.knowledge_bases.rag.stores.store import FoundChunk, Hit, Known, Scope, Store, Vector
from ai_platform_engineering.text.query_words import query_words

EXACT_UP_TO: Final = 5_000
"""So many vectors are compared one by one, which finds the nearest for certain; among more, an index is asked."""

_MAX_EF_SEARCH: Final = 1000

_LOCKS: Final = 0x726167
"""The class of advisory locks, one for each datasource."""

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
# A word counts four times in the title and twice in the headings.
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


class PostgresStore(Store):
    def __init__(self, url: str, *, exact_up_to: int = EXACT_UP_TO) -> None:
        address = Address(url)
        prepare(address)
        self._exact_up_to = exact_up_to
        self._connections = Connections(address)

    def datasources(self) -> list[Datasource]:
        with self._connections.lent() as connection:
            rows = connection.execute(_DATASOURCES).fetchall()
        return [
            Datasource(name, origin, documents, chunks, _time(updated))
            for name, origin, documents, chunks, updated in rows
        ]

    def known(self, datasource: str) -> Mapping[str, Known]:
        with self._connections.lent() as connection:
            rows = connection.execute(
                "SELECT id, fingerprint, revision FROM rag.document WHERE datasource = %s", [datasource]
            ).fetchall()
        return {document_id: Known(fingerprint, revision) for document_id, fingerprint, revision in rows}

    def put(
        self, document: Document, known: Known, chunks: Sequence[Chunk], vectors: Sequence[Vector] | None, model: str
    ) -> None:
        packed = [_packed(vector) for vector in ([] if vectors is None else vectors)]
        if vectors is not None and len(packed) != len(chunks):
            raise ValueError(f"{len(packed)} vectors for {len(chunks)} chunks of {document.document_id}")
        number_of_model = None
        if packed:
            with self._connections.lent() as connection:
                number_of_model = note_model(connection, model, packed[0].dimensions())

        with self._connections.writing() as connection:
            number = _put_document(connection, document, known, len(chunks))
            numbers = _put_chunks(connection, number, document, chunks)
            if packed:
                connection.execute(_PUT_VECTORS, [number_of_model, numbers, packed])

    def note_revision(self, document_id: str, known: Known) -> None:
        with self._connections.lent() as connection:
            connection.execute(
                "UPDATE rag.document SET fingerprint = %s, revision = %s WHERE id = %s",
                [known.fingerprint, known.revision, document_id],
            )

    def note_origin(self, datasource: str, origin: str) -> None:
        with self._connections.lent() as connection:
            connection.execute(
                "INSERT INTO rag.datasource VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET origin = excluded.origin",
                [datasource, origin],
            )

    def remove(self, document_ids: Collection[str]) -> None:
        with self._connections.writing() as connection:
            # In one order, so that two who remove the same documents wait for each other and not in a circle.
            rows = connection.execute(
                "SELECT number FROM rag.document WHERE id = ANY(%s) ORDER BY number FOR UPDATE", [list(document_ids)]
            ).fetchall()
            _remove_documents(connection, [number for (number,) in rows])

    def remove_datasource(self, name: str) -> bool:
        with self._connections.writing() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCKS, name])
            rows = connection.execute(
                "SELECT number FROM rag.document WHERE datasource = %s ORDER BY number FOR UPDATE", [name]
            ).fetchall()
            _remove_documents(connection, [number for (number,) in rows])
            return connection.execute("DELETE FROM rag.datasource WHERE name = %s", [name]).rowcount > 0

    def document(self, document_id: str) -> Document | None:
        with self._connections.lent() as connection:
            row = connection.execute(
                "SELECT datasource, path, title, text, link, updated FROM rag.document WHERE id = %s", [document_id]
            ).fetchone()
        if row is None:
            return None
        datasource, path, title, text, link, updated = row
        return Document(datasource, path, title, text, link, _time(updated))

    def lexical(self, query: str, count: int, scope: Scope) -> list[Hit]:
        words = queries.plain_words(" ".join(query_words(query)))
        if not words or count < 1:
            return []
        values = {**queries.scope_values(scope), "words": words, "count": count}
        with self._connections.lent() as connection:
            rows = connection.execute(queries.lexical(scope), values).fetchall()
        return [Hit(chunk_id, score) for chunk_id, score in rows]

    def nearest(self, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        if count < 1:
            return []
        packed = _packed(vector)
        dimensions = packed.dimensions()
        values = {**queries.scope_values(scope), "vector": packed, "count": count}
        with self._connections.lent() as connection:
            number = model_number(connection, model, dimensions)
            if number is None:
                return []
            ((in_scope,),) = connection.execute(queries.chunks_in(scope), values).fetchall()
            if dimensions > MAX_INDEXED_SIZE or in_scope <= self._exact_up_to:
                query = queries.nearest_exact(number, scope)
                rows = connection.execute(query, {**values, "candidates": count}).fetchall()
            else:
                rows = _walk_index(connection, number, dimensions, scope, count, values)
        return [Hit(chunk_id, similarity) for chunk_id, similarity in rows]

    def settle(self) -> None:
        # The server does it too, but only after a while, and until then a search for words takes twenty times as long.
        with self._connections.lent() as connection:
            connection.execute("VACUUM (ANALYZE) rag.posting, rag.chunk, rag.document, rag.embedding")

    def found(self, chunk_ids: Sequence[str]) -> list[FoundChunk]:
        wanted = [
            (document_id, int(place))
            for document_id, _, place in (chunk_id.rpartition("#") for chunk_id in chunk_ids)
            if place.isascii() and place.isdigit() and len(place) < 10
        ]
        with self._connections.lent() as connection:
            rows = connection.execute(
                _FOUND, [[document_id for document_id, _ in wanted], [place for _, place in wanted]]
            ).fetchall()
        return [
            FoundChunk(Chunk(document_id, place, section, text), datasource, title, link, _time(updated))
            for document_id, place, section, text, datasource, title, link, updated in rows
        ]

    def close(self) -> None:
        self._connections.close()


def _put_document(connection: Connection, document: Document, known: Known, chunks: int) -> int:
    """The row of the document, without chunks."""
    # The datasource is not removed meanwhile; others may put documents into it.
    connection.execute("SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s))", [_LOCKS, document.datasource])
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
            known.fingerprint,
            known.revision,
            chunks,
        ],
    ).fetchall()
    _remove_chunks(connection, [number])
    return int(number)


def _put_chunks(connection: Connection, number: int, document: Document, chunks: Sequence[Chunk]) -> list[int]:
    """The numbers of the chunks, which can be found by their words from now on."""
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


def _remove_documents(connection: Connection, numbers: list[int]) -> None:
    _remove_chunks(connection, numbers)
    connection.execute("DELETE FROM rag.document WHERE number = ANY(%s)", [numbers])


def _remove_chunks(connection: Connection, documents: list[int]) -> None:
    connection.execute(
        "DELETE FROM rag.posting USING rag.chunk WHERE posting.chunk = chunk.number AND chunk.document = ANY(%s)",
        [documents],
    )
    connection.execute("DELETE FROM rag.chunk WHERE document = ANY(%s)", [documents])


def _walk_index(
    connection: Connection, model: int, dimensions: int, scope: Scope, count: int, values: Mapping[str, object]
) -> list[tuple[str, float]]:
    with connection.transaction():
        # The walk goes on until there are enough in the scope, however many outside it are nearer. It meets them almost
        # in order: more are taken than asked for, and put in order when all are there.
        connection.execute(
            "SELECT set_config('hnsw.ef_search', %s, true), set_config('hnsw.iterative_scan', 'relaxed_order', true), "
            "set_config('hnsw.max_scan_tuples', '200000', true), set_config('hnsw.scan_mem_multiplier', '16', true)",
            [str(min(2 * count + 50, _MAX_EF_SEARCH))],
        )
        query = queries.nearest_indexed(model, dimensions, scope)
        return connection.execute(query, {**values, "candidates": 2 * count}).fetchall()


def _packed(vector: Vector) -> PostgresVector:
    return PostgresVector(list(vector))


def _time(stored: datetime | None) -> datetime | None:
    return None if stored is None else stored.astimezone(UTC)
