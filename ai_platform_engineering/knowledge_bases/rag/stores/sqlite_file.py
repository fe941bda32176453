"""The file of the SQLite store: its tables, its format version and migration, its connections, and its errors.

The file is in WAL mode, so searches never wait for an ingest. With `synchronous=NORMAL`, a killed process loses
nothing. A power cut can lose the last documents, which the next ingest restores.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStoreError
from ai_platform_engineering.storage.sqlite.shared_file import write_ahead
from ai_platform_engineering.text.query_words import spaced
from ai_platform_engineering.utils.private_files import create_private_file

FORMAT: Final = 2
_FORMAT_WITHOUT_PAIRS: Final = 1
"""Its full-text index does not find words in text without spaces (Chinese, Japanese)."""
BUSY_SECONDS: Final = 30.0
_WAL_PAGES: Final = 4000
_CACHE_KIBIBYTES: Final = 16_384

# Chunk numbers are never reused: a higher number than the last one in memory is a new vector. The text of a chunk is
# stored once, in `chunk`. The index has no copy (an external content table), so it needs the same text, through the
# view and `spaced`, to add a chunk and to delete it.
_TABLES: Final = """
CREATE TABLE datasource (name TEXT PRIMARY KEY, origin TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE document (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    datasource TEXT NOT NULL,
    path TEXT NOT NULL,
    title TEXT NOT NULL,
    link TEXT NOT NULL,
    updated_us INTEGER,
    fingerprint TEXT NOT NULL,
    revision TEXT,
    chunks INTEGER NOT NULL
);
CREATE INDEX document_by_datasource ON document (datasource);
CREATE TABLE document_text (document INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE chunk (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL,
    place INTEGER NOT NULL,
    section TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (document, place)
);
CREATE VIEW chunk_words AS
    SELECT chunk.number, chunk.document, document.title, chunk.section, chunk.text
    FROM chunk JOIN document ON document.number = chunk.document;
CREATE VIRTUAL TABLE words USING fts5 (
    title, section, text,
    content = 'chunk_words', content_rowid = 'number', tokenize = "porter unicode61 remove_diacritics 2"
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);
CREATE TABLE model (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL, dimensions INTEGER NOT NULL, UNIQUE (name, dimensions)
);
CREATE TABLE vector (
    chunk INTEGER PRIMARY KEY, document INTEGER NOT NULL, model INTEGER NOT NULL, body BLOB NOT NULL
);
CREATE INDEX vector_by_model ON vector (model);
CREATE TABLE generation (number INTEGER NOT NULL);
INSERT INTO generation VALUES (0);
"""
FileIdentity = tuple[int, int]
"""Device and inode, which differ if another file has replaced this one."""


class FileConnection(sqlite3.Connection):
    """`file` is the file that the connection has opened."""

    file: FileIdentity | None = None


_OUR_TABLES: Final = frozenset({"datasource", "document", "chunk", "words", "vocabulary", "vector", "generation"})


def file_identity(path: Path) -> FileIdentity | None:
    """None if the file does not exist or cannot be accessed."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def prepare(path: Path) -> FileIdentity | None:
    """Create the file if it is missing, migrate it if it is older, and check its format and access."""
    try:
        create_private_file(path)
        connection = connect(path)
    except (sqlite3.Error, OSError) as error:
        raise unusable(path, error) from error
    try:
        # First without a lock: a current file must open while an ingest holds the write lock.
        if not _is_current(path, connection):
            # Of two processes that start together, the second waits here and then finds the tables.
            connection.execute("BEGIN IMMEDIATE")
            if not _is_current(path, connection):
                _create_or_migrate(connection)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        raise unusable(path, error) from error
    finally:
        connection.close()
    return connection.file


def _create_or_migrate(connection: sqlite3.Connection) -> None:
    if connection.execute("PRAGMA user_version").fetchone()[0] == _FORMAT_WITHOUT_PAIRS:
        connection.execute("INSERT INTO words (words) VALUES ('delete-all')")
        connection.execute(
            "INSERT INTO words (rowid, title, section, text) "
            "SELECT number, spaced(title), spaced(section), spaced(text) FROM chunk_words"
        )
        return
    for statement in _TABLES.split(";\n"):
        connection.execute(statement)


def _is_current(path: Path, connection: sqlite3.Connection) -> bool:
    """False if the file is empty or has an older format. Raises for a newer or unknown format."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if found in {_FORMAT_WITHOUT_PAIRS, FORMAT} and tables >= _OUR_TABLES:
        return found == FORMAT
    if found > FORMAT and tables >= {"document", "chunk"}:
        raise KnowledgeStoreError(
            f"{path} was written by a newer version of this product (format {found}; this version supports {FORMAT}). "
            "Upgrade this installation, or choose another directory with DATA_DIR."
        )
    if found or tables:
        raise KnowledgeStoreError(f"{path} is not a knowledge base, or has an unknown format ({found}). {_MOVE_AWAY}.")
    return False


def connect(path: Path) -> FileConnection:
    # The pool passes connections between threads, but never to two of them at the same time.
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, factory=FileConnection
    )
    try:
        connection.file = file_identity(path)
        write_ahead(connection, BUSY_SECONDS)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIBIBYTES}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.create_function("spaced", 1, spaced, deterministic=True)
    except BaseException:
        connection.close()
        raise
    return connection


_MOVE_AWAY: Final = "Move it away and ingest again, or choose another directory with DATA_DIR"
_WAYS_OUT: Final = {
    sqlite3.SQLITE_FULL: "Make room on the disk, or choose another directory with DATA_DIR, and ingest again",
    sqlite3.SQLITE_READONLY: "Let this user write the file and its directory, or choose another one with DATA_DIR",
    sqlite3.SQLITE_BUSY: "Another process is writing to it; try again when that one is done",
    sqlite3.SQLITE_LOCKED: "Another process is writing to it; try again when that one is done",
    sqlite3.SQLITE_NOTADB: _MOVE_AWAY,
    sqlite3.SQLITE_CORRUPT: _MOVE_AWAY,
}
_CHECK: Final = "Check that the directory can be written and has room, or choose another one with DATA_DIR"
_NO_FTS5: Final = (
    "This Python's SQLite has no full-text search (FTS5); use a Python that has it, or set RAG_DATABASE_URL to a "
    "Postgres database"
)


def unusable(path: Path, error: Exception) -> KnowledgeStoreError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    # The low byte is the primary result code.
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF
    way_out = _NO_FTS5 if "no such module: fts5" in reason else _WAYS_OUT.get(kind, _CHECK)
    return KnowledgeStoreError(f"{path} cannot be used as the knowledge base: {reason}. {way_out}.")
