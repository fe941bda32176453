"""The records of the sandbox in one SQLite file, which any number of processes share.

Each read or write opens its own connection, runs one transaction and closes the connection. Threads and processes
therefore need no other coordination, and the sandbox can be reset while it is in use. The first process that opens a
new file fills it with the sample data.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

from ai_platform_engineering.sandbox.records import Organization, Record
from ai_platform_engineering.sandbox.seed import seed_records
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.sqlite.shared_file import write_ahead
from ai_platform_engineering.utils.private_files import create_private_file

FORMAT: Final = 2
"""The version of the file's format, stored as SQLite's `user_version`. Raise it together with `_MIGRATIONS`."""
BUSY_SECONDS: Final = 10.0

# Format 2 renamed three kinds of records. The organization is the only record with an Argo CD version.
_RENAME_KINDS: Final = """
UPDATE record SET kind = 'Organization', key = 'organization'
    WHERE json_extract(body, '$.argocd_version') IS NOT NULL;
UPDATE record SET kind = 'Employee' WHERE kind = 'Person';
UPDATE record SET kind = 'GithubRepository' WHERE kind = 'Repository'
"""
_MIGRATIONS: Final = {1: _RENAME_KINDS}
"""Statements that bring a file of one format to the next, by the format they start from."""

_MOVE_AWAY: Final = "Move the file away, or choose another directory with DATA_DIR."

R = TypeVar("R", bound=Record)


class SandboxError(Exception):
    """The file cannot be used; the text names it and the way out."""


def sandbox_path(data_dir: Path) -> Path:
    return data_dir / "sandbox.db"


def reset_sandbox(path: Path) -> None:
    """Restore the sample data, also while other processes use the file. A file that is not a database is replaced."""
    try:
        try:
            _restore(path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            _restore(path)
    except (sqlite3.Error, OSError) as error:
        raise SandboxError(f"The sandbox file {path} could not be reset: {error}.") from error


class SandboxSession:
    """The records within one transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, kind: type[R]) -> list[R]:
        rows = self._connection.execute("SELECT body FROM record WHERE kind = ? ORDER BY key", (kind.__name__,))
        return [kind.model_validate_json(body) for (body,) in rows]

    def find(self, kind: type[R], key: str) -> R | None:
        """The record with this key, compared without regard to case."""
        row = self._connection.execute(
            "SELECT body FROM record WHERE kind = ? AND key = ? COLLATE NOCASE", (kind.__name__, key)
        ).fetchone()
        return None if row is None else kind.model_validate_json(row[0])

    def put(self, record: Record) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO record (kind, key, body) VALUES (?, ?, ?)",
            (type(record).__name__, record.key, record.model_dump_json()),
        )

    def organization(self) -> Organization:
        organization = self.find(Organization, "organization")
        if organization is None:
            raise SandboxError(
                "The sandbox has no organization record. `platform-engineer sandbox reset` restores the sample data."
            )
        return organization

    def advance_clock(self) -> datetime:
        """Advance the sandbox's clock by one minute. Every change does so, which makes runs repeatable."""
        organization = self.organization()
        now = organization.now + timedelta(minutes=1)
        self.put(organization.replace(now=now))
        return now


@dataclass(frozen=True)
class SandboxStore:
    path: Path

    @classmethod
    def of(cls, settings: Settings) -> SandboxStore:
        return cls(sandbox_path(settings.data_dir))

    @contextmanager
    def read(self) -> Iterator[SandboxSession]:
        """A read transaction: one consistent view of the records."""
        with self._transaction("BEGIN") as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[SandboxSession]:
        """A write transaction, rolled back when the block raises."""
        with self._transaction("BEGIN IMMEDIATE") as session:
            yield session

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[SandboxSession]:
        try:
            with closing(_connect(self.path)) as connection:
                if _format(connection) != FORMAT:
                    _prepare(self.path, connection)
                connection.execute(begin)
                try:
                    yield SandboxSession(connection)
                except BaseException:
                    _roll_back(connection)
                    raise
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise SandboxError(
                f"The sandbox file {self.path} cannot be used: {error}. Check that the data directory can be written, "
                "or restore the sample data with `platform-engineer sandbox reset`."
            ) from error


async def check_up_sandbox(settings: Settings) -> StoreCheckup:
    """The row of `platform-engineer doctor`."""
    return await asyncio.to_thread(_check_file, SandboxStore.of(settings))


def _check_file(store: SandboxStore) -> StoreCheckup:
    found = StoreCheckup.of_file("sandbox", store.path)
    if not found.exists:
        return found
    try:
        with store.read() as session:
            session.organization()
    except SandboxError as error:
        return found.failed(str(error))
    return found.opened()


def _connect(path: Path) -> sqlite3.Connection:
    create_private_file(path)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _format(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    """Fill a new file, migrate one of an earlier format, and refuse every other file."""
    _check_format(path, connection)
    write_ahead(connection, BUSY_SECONDS)
    records = seed_records()

    def prepare() -> None:
        # Another process may have prepared the file since the first check.
        _check_format(path, connection)
        found = _format(connection)
        if found == 0:
            _fill(connection, records)
            return
        for version in range(found, FORMAT):
            for statement in _MIGRATIONS[version].split(";"):
                connection.execute(statement)

    _write_format(connection, prepare)


def _check_format(path: Path, connection: sqlite3.Connection) -> None:
    # One statement, so that tables that another process just created are seen together with their version.
    found, tables = connection.execute(
        "SELECT user_version, (SELECT count(*) FROM sqlite_master WHERE type = 'table') FROM pragma_user_version"
    ).fetchone()
    if found > FORMAT:
        raise SandboxError(
            f"The sandbox file {path} was written by a newer version of this product (format {found}; this version "
            f"reads up to {FORMAT}). Update the product, choose another directory with DATA_DIR, or replace the "
            "contents with the sample data: `platform-engineer sandbox reset`."
        )
    if found < 0 or (found == 0) != (tables == 0):
        raise SandboxError(f"The sandbox file {path} is a database of another program. {_MOVE_AWAY}")


def _restore(path: Path) -> None:
    with closing(_connect(path)) as connection:
        records = seed_records()
        write_ahead(connection, BUSY_SECONDS)
        _write_format(connection, lambda: _fill(connection, records))


def _fill(connection: sqlite3.Connection, records: list[Record]) -> None:
    connection.execute("DROP TABLE IF EXISTS record")
    connection.execute(
        "CREATE TABLE record (kind TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL,"
        " PRIMARY KEY (kind, key)) WITHOUT ROWID"
    )
    session = SandboxSession(connection)
    for record in records:
        session.put(record)


def _write_format(connection: sqlite3.Connection, change: Callable[[], None]) -> None:
    """Run `change` and set the file's format, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        change()
        connection.execute(f"PRAGMA user_version = {FORMAT}")
    except BaseException:
        _roll_back(connection)
        raise
    connection.execute("COMMIT")


def _roll_back(connection: sqlite3.Connection) -> None:
    """Roll back, unless SQLite has already done so, as it does for a full disk and some other errors."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
