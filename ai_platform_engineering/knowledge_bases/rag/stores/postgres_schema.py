"""The tables of the Postgres store, in a schema of their own, and how they come to be.

A posting is one word of one chunk, with all that BM25 needs to know: its index alone answers a search for words.
Vectors of different models may have different dimensions. A model has a number for each, and an index of its own.
"""

from __future__ import annotations

from typing import Any, Final, LiteralString

import psycopg
from psycopg import errors, sql

from ai_platform_engineering.knowledge_bases.rag.stores.postgres_address import Address
from ai_platform_engineering.knowledge_bases.rag.stores.store import StoreError

FORMAT: Final = 1
OLDEST_PGVECTOR: Final = (0, 8)
MAX_INDEXED_SIZE: Final = 4000
"""Dimensions; vectors that are larger are compared one by one."""

Connection = psycopg.Connection[Any]

_LOCK: Final = 0x6B6E6F77
_MAX_FULL_PRECISION: Final = 2000

# Vectors stay in the row as long as they fit a page: out of line, comparing them would cost a look-up for each.
_TABLES: Final[LiteralString] = """
CREATE SCHEMA IF NOT EXISTS rag;
CREATE TABLE rag.format (number int NOT NULL);
CREATE TABLE rag.datasource (name text COLLATE "C" PRIMARY KEY, origin text NOT NULL DEFAULT '');
CREATE TABLE rag.document (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    datasource text COLLATE "C" NOT NULL REFERENCES rag.datasource,
    path text COLLATE "C" NOT NULL,
    title text NOT NULL,
    text text NOT NULL,
    link text NOT NULL,
    updated timestamptz,
    fingerprint text NOT NULL,
    revision text,
    chunks int NOT NULL,
    length bigint NOT NULL DEFAULT 0
) WITH (toast_tuple_target = 256);
CREATE INDEX document_by_datasource ON rag.document (datasource) INCLUDE (chunks, length, updated);
CREATE TABLE rag.chunk (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    document bigint NOT NULL REFERENCES rag.document ON DELETE CASCADE,
    place int NOT NULL,
    section text NOT NULL,
    text text NOT NULL
);
CREATE UNIQUE INDEX chunk_by_place ON rag.chunk (document, place) INCLUDE (number);
CREATE TABLE rag.posting (
    chunk bigint NOT NULL,
    frequency real NOT NULL,
    length int NOT NULL,
    term text COLLATE "C" NOT NULL
);
CREATE INDEX posting_by_term ON rag.posting (term, chunk) INCLUDE (frequency, length);
CREATE INDEX posting_by_chunk ON rag.posting (chunk);
CREATE TABLE rag.model (
    number int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    dimensions int NOT NULL,
    UNIQUE (name, dimensions)
);
CREATE TABLE rag.embedding (
    chunk bigint PRIMARY KEY REFERENCES rag.chunk ON DELETE CASCADE,
    model int NOT NULL REFERENCES rag.model,
    vector vector NOT NULL
);
ALTER TABLE rag.embedding ALTER COLUMN vector SET STORAGE MAIN;
"""


def prepare(address: Address) -> None:
    """Make what is missing. Two processes may come at once: the second waits, and then finds everything."""
    with address.connect() as connection:
        try:
            if not _exists(connection):
                with connection.transaction():
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
                    if not _exists(connection):
                        _create(address, connection)
            _check(address, connection)
        except psycopg.Error as error:
            raise address.unusable(error) from error


def model_number(connection: Connection, name: str, dimensions: int) -> int | None:
    row = connection.execute(
        "SELECT number FROM rag.model WHERE name = %s AND dimensions = %s", [name, dimensions]
    ).fetchone()
    return None if row is None else int(row[0])


def note_model(connection: Connection, name: str, dimensions: int) -> int:
    """The number of the model, which is known from now on. Not to be called inside a transaction: making the index
    waits for everyone who is writing vectors."""
    if (number := model_number(connection, name, dimensions)) is not None:
        return number
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if (number := model_number(connection, name, dimensions)) is not None:
            return number
        ((number,),) = connection.execute(
            "INSERT INTO rag.model (name, dimensions) VALUES (%s, %s) RETURNING number", [name, dimensions]
        ).fetchall()
        if dimensions <= MAX_INDEXED_SIZE:
            kind = indexed_kind(dimensions)
            connection.execute(
                sql.SQL("CREATE INDEX {} ON rag.embedding USING hnsw ((vector::{}) {}) WHERE model = {}").format(
                    sql.Identifier(f"embedding_of_model_{number}"),
                    kind,
                    sql.SQL("vector_cosine_ops" if dimensions <= _MAX_FULL_PRECISION else "halfvec_cosine_ops"),
                    sql.Literal(number),
                )
            )
        return int(number)


def indexed_kind(dimensions: int) -> sql.Composable:
    """The type that an index of this many dimensions is made of: large vectors fit only in half precision."""
    name: LiteralString = "vector({})" if dimensions <= _MAX_FULL_PRECISION else "halfvec({})"
    return sql.SQL(name).format(sql.Literal(dimensions))


def _exists(connection: Connection) -> bool:
    # Not with to_regclass(), which may remember from before the lock that there was none.
    rows = connection.execute("SELECT FROM pg_catalog.pg_tables WHERE schemaname = 'rag' AND tablename = 'format'")
    return rows.rowcount > 0


def _create(address: Address, connection: Connection) -> None:
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except errors.InsufficientPrivilege as error:
        raise address.unusable_because(
            "the vector extension is not in this database, and this user may not create it",
            "Have an administrator run CREATE EXTENSION vector in it",
        ) from error
    except (errors.FeatureNotSupported, errors.UndefinedFile) as error:
        raise address.unusable_because(
            "this server has no pgvector", "Install its vector extension, or name a server that has it"
        ) from error
    connection.execute(_TABLES)
    connection.execute("INSERT INTO rag.format VALUES (%s)", [FORMAT])


def _check(address: Address, connection: Connection) -> None:
    row = connection.execute("SELECT number FROM rag.format").fetchone()
    found = None if row is None else row[0]
    if found != FORMAT:
        raise StoreError(
            f"The knowledge base in {address} was written by another version of this product (format {found}; this one "
            f"knows {FORMAT}). Use that version, or name another database in RAG_DATABASE_URL."
        )
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    version = "none" if row is None else str(row[0])
    if row is None or tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PGVECTOR:
        oldest = ".".join(map(str, OLDEST_PGVECTOR))
        raise address.unusable_because(
            f"its pgvector has to be {oldest} or newer (found: {version})",
            "Have an administrator run ALTER EXTENSION vector UPDATE, after updating the server's package if need be",
        )
