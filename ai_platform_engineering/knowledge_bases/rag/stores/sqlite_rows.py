"""Writing the rows of a document: its chunks, their words in the index, their vectors. Always within a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ai_platform_engineering.knowledge_bases.rag.documents import Chunk, Document
from ai_platform_engineering.knowledge_bases.rag.stores.sqlite_times import microseconds
from ai_platform_engineering.knowledge_bases.rag.stores.store import Known


def put_document(connection: sqlite3.Connection, document: Document, known: Known, chunks: int) -> int:
    """The row of the document, for which so many chunks are to be put."""
    connection.execute(
        "INSERT INTO datasource (name, origin) VALUES (?, '') ON CONFLICT DO NOTHING", (document.datasource,)
    )
    row = connection.execute("SELECT number FROM document WHERE id = ?", (document.document_id,)).fetchone()
    if row is not None:
        # Before the title changes, as the index has to be told the words that it forgets.
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
            microseconds(document.updated),
            known.fingerprint,
            known.revision,
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


def changed(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE generation SET number = number + 1")
