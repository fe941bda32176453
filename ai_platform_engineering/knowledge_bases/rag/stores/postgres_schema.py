"""The Postgres schema `rag`: address, tables, format version, and the vector index of each model.

A posting is one word of one chunk, with everything that BM25 needs, so keyword search reads only the index of postings.
Vectors of different models can have different dimensions. Each pair of model and dimensions has a number and an index.
"""

from __future__ import annotations

from typing import Final, LiteralString

from psycopg import errors, sql

from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStoreError
from ai_platform_engineering.storage.postgres.schema import PgConnection, Schema
from ai_platform_engineering.utils.postgres_address import PostgresAddress

FORMAT: Final = 1
OLDEST_PGVECTOR: Final = (0, 8)
MAX_INDEXED_DIMENSIONS: Final = 4000
"""Larger vectors are compared one by one."""

_LOCK: Final = 0x6B6E6F77
_MAX_FULL_PRECISION: Final = 2000
"""Dimensions of vectors that are indexed in full precision."""

# STORAGE MAIN keeps vectors in the row if they fit a page. Out of line, each comparison would need another lookup.
_TABLES: Final[LiteralString] = """
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
_SCHEMA: Final = Schema("rag", FORMAT, _TABLES)


class KnowledgeBaseAddress(PostgresAddress):
    setting = "RAG_DATABASE_URL"
    purpose = "as the knowledge base"
    error = KnowledgeStoreError
    tables_gone = "Its tables are gone: restart to create them again, then ingest again"


def prepare(address: KnowledgeBaseAddress) -> None:
    """Create the tables if they are missing, and check their format and the version of pgvector."""
    _SCHEMA.prepare(address, extend=lambda connection: _create_extension(address, connection))
    with address.connect() as connection:
        _check_pgvector(address, connection)


def model_number(connection: PgConnection, name: str, dimensions: int) -> int | None:
    row = connection.execute(
        "SELECT number FROM rag.model WHERE name = %s AND dimensions = %s", [name, dimensions]
    ).fetchone()
    return None if row is None else int(row[0])


def ensure_model(connection: PgConnection, name: str, dimensions: int) -> int:
    """The number of the model, which is created if it is new. Do not call it in a transaction: creating the index waits
    for all transactions that write vectors."""
    if (number := model_number(connection, name, dimensions)) is not None:
        return number
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        if (number := model_number(connection, name, dimensions)) is not None:
            return number
        ((number,),) = connection.execute(
            "INSERT INTO rag.model (name, dimensions) VALUES (%s, %s) RETURNING number", [name, dimensions]
        ).fetchall()
        if dimensions <= MAX_INDEXED_DIMENSIONS:
            type_ = indexed_type(dimensions)
            connection.execute(
                sql.SQL("CREATE INDEX {} ON rag.embedding USING hnsw ((vector::{}) {}) WHERE model = {}").format(
                    sql.Identifier(f"embedding_of_model_{number}"),
                    type_,
                    sql.SQL("vector_cosine_ops" if dimensions <= _MAX_FULL_PRECISION else "halfvec_cosine_ops"),
                    sql.Literal(number),
                )
            )
        return int(number)


def indexed_type(dimensions: int) -> sql.Composable:
    """The type of the indexed values. Large vectors fit an index only in half precision."""
    name: LiteralString = "vector({})" if dimensions <= _MAX_FULL_PRECISION else "halfvec({})"
    return sql.SQL(name).format(sql.Literal(dimensions))


def _create_extension(address: KnowledgeBaseAddress, connection: PgConnection) -> None:
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


def _check_pgvector(address: KnowledgeBaseAddress, connection: PgConnection) -> None:
    row = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
    version = "none" if row is None else str(row[0])
    if row is None or tuple(int(part) for part in version.split(".")[:2]) < OLDEST_PGVECTOR:
        oldest = ".".join(map(str, OLDEST_PGVECTOR))
        raise address.unusable_because(
            f"its pgvector has to be {oldest} or newer (found: {version})",
            "Have an administrator run ALTER EXTENSION vector UPDATE, after updating the server's package if need be",
        )
