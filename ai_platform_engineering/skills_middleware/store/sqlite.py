"""The skill store in a SQLite file of the data directory. In WAL mode several processes can use it at once."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent
from ai_platform_engineering.skills_middleware.store.rows import (
    SkillRow,
    check_unchanged,
    content_from,
    key_values,
    skill_from,
)
from ai_platform_engineering.skills_middleware.store.store import (
    AlreadyExistsError,
    NewSkill,
    NotFoundError,
    SkillKey,
    SkillStoreError,
)
from ai_platform_engineering.storage.sqlite.shared_file import write_ahead
from ai_platform_engineering.utils.private_files import create_private_file

FORMAT: Final = 1
"""The version of the file's format, stored as SQLite's `user_version`. Format 1 is the first: none to migrate from."""
BUSY_SECONDS: Final = 5.0

_TABLES: Final = """
CREATE TABLE skill (
    name TEXT NOT NULL,
    visibility TEXT NOT NULL,
    holder TEXT NOT NULL,
    digest TEXT NOT NULL,
    head TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (name, visibility, holder)
);
CREATE TABLE generation (number INTEGER NOT NULL);
INSERT INTO generation VALUES (0);
"""
_FORMAT_AND_TABLES: Final = """
SELECT user_version, (SELECT coalesce(group_concat(name, ' '), '') FROM sqlite_master WHERE type = 'table')
FROM pragma_user_version
"""
_GENERATION: Final = "SELECT number FROM generation"
_HEAD: Final = "SELECT digest, head FROM skill WHERE name = ? AND visibility = ? AND holder = ?"
_CONTENT: Final = "SELECT content FROM skill WHERE name = ? AND visibility = ? AND holder = ?"
_DELETE: Final = "DELETE FROM skill WHERE name = ? AND visibility = ? AND holder = ?"

_CHECK: Final = "Check that the directory can be written and has room, or choose another one with DATA_DIR"
_MOVE_AWAY: Final = "Move it away, or choose another directory with DATA_DIR"
_WAYS_OUT: Final = {
    sqlite3.SQLITE_FULL: "Free some space on the disk and try again",
    sqlite3.SQLITE_READONLY: "Let this user write the file and its directory, or choose another one with DATA_DIR",
    sqlite3.SQLITE_BUSY: "Another process is writing to it; try again",
    sqlite3.SQLITE_LOCKED: "Another process is writing to it; try again",
    sqlite3.SQLITE_NOTADB: _MOVE_AWAY,
    sqlite3.SQLITE_CORRUPT: _MOVE_AWAY,
}

_FileIdentity = tuple[int, int]
_Result = TypeVar("_Result")


class SqliteSkillStore:
    """The first write creates the file. A file that is replaced while the process runs is opened again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._identity: _FileIdentity | None = None

    async def create(self, new: NewSkill, by: str | None) -> Skill:
        row = SkillRow.created(new, by)
        await self._write(lambda connection: _insert(connection, new.key, row))
        return row.skill

    async def replace(self, key: SkillKey, new: NewSkill, digest: str | None, by: str | None) -> Skill:
        def replace(connection: sqlite3.Connection) -> SkillRow:
            stored, head = _digest_and_head(connection, key)
            check_unchanged(key, stored, digest)
            row = SkillRow.replaced(new, skill_from(head), by)
            connection.execute(_DELETE, key_values(key))
            _insert(connection, new.key, row)
            return row

        return (await self._write(replace)).skill

    async def delete(self, key: SkillKey, digest: str | None) -> None:
        def delete(connection: sqlite3.Connection) -> None:
            check_unchanged(key, _digest_and_head(connection, key)[0], digest)
            connection.execute(_DELETE, key_values(key))

        await self._write(delete)

    async def get(self, key: SkillKey) -> Skill:
        rows = await self._read(_HEAD, key_values(key))
        if not rows:
            raise NotFoundError(key)
        return skill_from(rows[0][1])

    async def content(self, key: SkillKey) -> SkillContent:
        rows = await self._read(_CONTENT, key_values(key))
        if not rows:
            raise NotFoundError(key)
        return content_from(rows[0][0])

    async def load(self) -> tuple[Skill, ...]:
        rows = await self._read("SELECT head FROM skill ORDER BY name, visibility, holder")
        return await asyncio.to_thread(lambda: tuple(skill_from(head) for (head,) in rows))

    async def version(self) -> str:
        """Every turn asks for it, so it takes no thread if the answer needs no waiting."""
        rows = self._rows(_GENERATION) if self._answers_at_once() else await self._read(_GENERATION)
        return f"{self._identity}:{rows[0][0]}" if rows else ""

    async def aclose(self) -> None:
        await asyncio.to_thread(self._close)

    async def _read(self, query: str, values: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        return await asyncio.to_thread(self._rows, query, values)

    def _rows(self, query: str, values: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
        with self._opened(create=False) as connection:
            return [] if connection is None else connection.execute(query, values).fetchall()

    def _answers_at_once(self) -> bool:
        """Whether the file is missing, or open and not in use by a thread: a reader in WAL mode waits for no writer."""
        if self._lock.locked():
            return False
        try:
            identity = _identity(self._path)
        except OSError:
            return False
        return identity is None or (self._connection is not None and identity == self._identity)

    async def _write(self, operation: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Run `operation` in a transaction."""

        def write() -> _Result:
            with self._opened(create=True) as connection:
                assert connection is not None  # noqa: S101 - `create=True` always gives a connection
                connection.execute("BEGIN IMMEDIATE")
                try:
                    result = operation(connection)
                    connection.execute("UPDATE generation SET number = number + 1")
                    connection.execute("COMMIT")
                except BaseException:
                    # SQLite has already rolled back if the disk is full.
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
                return result

        return await asyncio.to_thread(write)

    @contextmanager
    def _opened(self, *, create: bool) -> Iterator[sqlite3.Connection | None]:
        """The connection, for one thread at a time; None if there is no file and `create` is false."""
        with self._lock:
            try:
                identity = _identity(self._path)
                if self._connection is None or identity != self._identity:
                    self._drop_connection()
                    if identity is None and not create:
                        yield None
                        return
                    self._connection = _connect(self._path)
                    self._identity = _identity(self._path)
                yield self._connection
            except (sqlite3.Error, OSError) as error:
                raise unusable(self._path, error) from error
            except UnicodeEncodeError as error:
                raise SkillStoreError(f"{error.object[:80]!r} is not text that can be stored.") from error

    def _close(self) -> None:
        with self._lock:
            self._drop_connection()

    def _drop_connection(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _insert(connection: sqlite3.Connection, key: SkillKey, row: SkillRow) -> None:
    found = connection.execute(_HEAD, key_values(key)).fetchone()
    if found is not None:
        raise AlreadyExistsError(key, found[0])
    values = (row.name, row.visibility, row.holder, row.digest, row.head, row.content)
    connection.execute("INSERT INTO skill VALUES (?, ?, ?, ?, ?, ?)", values)


def _digest_and_head(connection: sqlite3.Connection, key: SkillKey) -> tuple[str, str]:
    found: tuple[str, str] | None = connection.execute(_HEAD, key_values(key)).fetchone()
    if found is None:
        raise NotFoundError(key)
    return found


def _identity(path: Path) -> _FileIdentity | None:
    """Device and inode, which differ between a file and its replacement."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _connect(path: Path) -> sqlite3.Connection:
    create_private_file(path)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if not _is_prepared(path, connection):
            write_ahead(connection, BUSY_SECONDS)
            # A second process waits here and then finds the tables.
            connection.execute("BEGIN IMMEDIATE")
            if not _is_prepared(path, connection):
                for statement in _TABLES.split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def _is_prepared(path: Path, connection: sqlite3.Connection) -> bool:
    """Whether the file has the current format; False if it is empty. Raises `SkillStoreError` for any other file."""
    # One statement, so that tables that another process just created are seen together with their version.
    found, names = connection.execute(_FORMAT_AND_TABLES).fetchone()
    tables = set(names.split())
    if found == FORMAT and tables >= {"skill", "generation"}:
        return True
    if found > FORMAT and "skill" in tables:
        raise SkillStoreError(
            f"{path} was written by a newer version of this product (format {found}; this version reads {FORMAT}). "
            "Update the product, or choose another directory with DATA_DIR."
        )
    if found or tables:
        raise SkillStoreError(f"{path} is a database of another program. {_MOVE_AWAY}.")
    return False


def unusable(path: Path, error: Exception) -> SkillStoreError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    # The low byte of a SQLite error code is its primary code.
    way_out = _WAYS_OUT.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, _CHECK)
    return SkillStoreError(f"{path} cannot be used to store skills: {reason}. {way_out}.")
