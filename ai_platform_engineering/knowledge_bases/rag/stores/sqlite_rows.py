"""Writes the rows of a document: chunks, full-text index, vectors. The caller holds the transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document
from ai_platform_engineering.knowledge_bases.rag.stores.store import DocumentVersion

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def to_microseconds(time: datetime | None) -> int | None:
    """The stored form of a time, which SQL can compare. A time without a zone is UTC."""
    if time is None:
        return None
    return ((time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def from_microseconds(stored: int | None) -> datetime | None:
    return None if stored is None else _EPOCH + stored * _MICROSECOND


def put_document(connection: sqlite3.Connection, document: Document, version: DocumentVersion, chunks: int) -> int:
    """Insert or update the row of the document, and remove its chunks. `chunks` is the number of the new ones."""
    connection.execute(
        "INSERT INTO datasource (name, origin) VALUES (?, '') ON CONFLICT DO NOTHING", (document.datasource,)
    )
    row = connection.execute("SELECT number FROM document WHERE id = ?", (document.document_id,)).fetchone()
    if row is not None:
        # Before the title changes: the index needs the old words to delete them.
        remove_chunks(connection, row[0])
    number: int = connection.execute(
        "INSERT INTO document (id, datasource, path, title, link, updated_us, fingerprint, revision, chunks) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET title = excluded.title, link = excluded.link, "
        "updated_us = excluded.updated_us, fingerprint = excluded.fingerprint, revision = excluded.revision, "
        "chunks = excluded.chunks "
        "RETURNING number",
        (
            document.document_id,
            document.datasource,
            document.path,
            document.title,
            document.link,
            to_microseconds(document.updated),
            version.fingerprint,
            version.revision,
            chunks,
        ),
    ).fetchone()[0]
    connection.execute("INSERT OR REPLACE INTO document_text VALUES (?, ?)", (number, document.text))
    return number


def put_chunks(connection: sqlite3.Connection, document: int, chunks: Sequence[Chunk]) -> None:
    connection.executemany(
        "INSERT INTO chunk (document, place, section, text) VALUES (?, ?, ?, ?)",
        [(document, chunk.index, chunk.section, chunk.text) for chunk in chunks],
    )
    connection.execute(
        "INSERT INTO words (rowid, title, section, text) "
        "SELECT number, spaced(title), spaced(section), spaced(text) FROM chunk_words WHERE document = ?",
        (document,),
    )


def put_vectors(
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


def remove_document(connection: sqlite3.Connection, number: int) -> None:
    remove_chunks(connection, number)
    connection.execute("DELETE FROM document_text WHERE document = ?", (number,))
    connection.execute("DELETE FROM document WHERE number = ?", (number,))


def remove_chunks(connection: sqlite3.Connection, document: int) -> None:
    connection.execute(
        "INSERT INTO words (words, rowid, title, section, text) "
        "SELECT 'delete', number, spaced(title), spaced(section), spaced(text) FROM chunk_words WHERE document = ?",
        (document,),
    )
    connection.execute("DELETE FROM vector WHERE chunk IN (SELECT number FROM chunk WHERE document = ?)", (document,))
    connection.execute("DELETE FROM chunk WHERE document = ?", (document,))


def increment_generation(connection: sqlite3.Connection) -> None:
    """Tells other processes that their vectors in memory are outdated."""
    connection.execute("UPDATE generation SET number = number + 1")
