"""The store in one SQLite file: documents, chunks, an FTS5 index and vectors.

Vectors are compared in memory, so each searching process holds a copy of them: about 40 MB for 100,000 chunks with the
offline model.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Datasource, Document
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_connections import SqliteConnections
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_rows import (
    from_microseconds,
    increment_generation,
    put_chunks,
    put_document,
    put_vectors,
    remove_document,
)
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_search import lexical
from ai_platform_engineering.knowledge_bases.rag.stores.store import (
    DocumentVersion,
    FoundChunk,
    Hit,
    KnowledgeStore,
    KnowledgeStoreError,
    Scope,
    Vector,
)

if TYPE_CHECKING:
    from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_vectors import VectorCache

_DATASOURCES: Final = """
SELECT datasource.name, datasource.origin, count(document.number), total(document.chunks), max(document.updated_us)
FROM datasource LEFT JOIN document ON document.datasource = datasource.name
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


class SqliteKnowledgeStore(KnowledgeStore):
    def __init__(self, path: Path) -> None:
        self._connections = SqliteConnections(path)
        self._cache: VectorCache | None = None
        self._cache_lock = threading.Lock()

    def datasources(self) -> list[Datasource]:
        with self._connections.reading() as connection:
            rows = connection.execute(_DATASOURCES).fetchall()
        return [
            Datasource(name, origin, documents, int(chunks), from_microseconds(updated))
            for name, origin, documents, chunks, updated in rows
        ]

    def versions(self, datasource: str) -> Mapping[str, DocumentVersion]:
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT id, fingerprint, revision FROM document WHERE datasource = ?", (datasource,)
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
        bodies = [] if vectors is None or not len(vectors) else self._vectors().encode(vectors)
        if vectors is not None and len(bodies) != len(chunks):
            raise ValueError(f"{len(bodies)} vectors for {len(chunks)} chunks of {document.document_id}")
        with self._connections.writing() as connection:
            number = put_document(connection, document, version, len(chunks))
            put_chunks(connection, number, chunks)
            if bodies:
                put_vectors(connection, number, [chunk.index for chunk in chunks], bodies, model)
            increment_generation(connection)

    def update_version(self, document_id: str, version: DocumentVersion) -> None:
        with self._connections.writing() as connection:
            connection.execute(
                "UPDATE document SET fingerprint = ?, revision = ? WHERE id = ?",
                (version.fingerprint, version.revision, document_id),
            )

    def set_origin(self, datasource: str, origin: str) -> None:
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
                    remove_document(connection, row[0])
            increment_generation(connection)

    def remove_datasource(self, name: str) -> bool:
        with self._connections.writing() as connection:
            rows = connection.execute("SELECT number FROM document WHERE datasource = ?", (name,)).fetchall()
            for (number,) in rows:
                remove_document(connection, number)
            increment_generation(connection)
            return connection.execute("DELETE FROM datasource WHERE name = ?", (name,)).rowcount > 0

    def document(self, document_id: str) -> Document | None:
        with self._connections.reading() as connection:
            row = connection.execute(_DOCUMENT, (document_id,)).fetchone()
        if row is None:
            return None
        datasource, path, title, text, link, updated = row
        return Document(datasource, path, title, text, link, from_microseconds(updated))

    def lexical(self, query: str, count: int, scope: Scope) -> list[Hit]:
        if count < 1:
            return []
        with self._connections.reading() as connection:
            return lexical(connection, query, count, scope)

    def nearest(self, vector: Vector, model: str, count: int, scope: Scope) -> list[Hit]:
        if count < 1:
            return []
        vectors = self._vectors()
        with self._connections.reading() as connection:
            return vectors.nearest(connection, vector, model, count, scope)

    def optimize(self) -> None:
        with self._connections.writing() as connection:
            connection.execute("PRAGMA optimize")

    def load_chunks(self, chunk_ids: Sequence[str]) -> list[FoundChunk]:
        found = []
        with self._connections.reading() as connection:
            for chunk_id in chunk_ids:
                document_id, _, place = chunk_id.rpartition("#")
                row = connection.execute(_FOUND, (document_id, place)).fetchone()
                if row is not None:
                    section, text, datasource, title, link, updated = row
                    chunk = Chunk(document_id, int(place), section, text)
                    found.append(FoundChunk(chunk, datasource, title, link, from_microseconds(updated)))
        return found

    def close(self) -> None:
        self._connections.close()
        self._cache = None

    def _vectors(self) -> VectorCache:
        try:
            from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_vectors import VectorCache  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise KnowledgeStoreError(
                f"Vectors need {error.name}, which is not installed: {install_command('embeddings')}. "
                "EMBEDDINGS_PROVIDER=none limits search to keywords."
            ) from error
        with self._cache_lock:
            if self._cache is None:
                self._cache = VectorCache()
            return self._cache
