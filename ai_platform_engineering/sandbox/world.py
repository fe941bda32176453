"""The world: the records of the simulated company in one SQLite file that any number of processes share.

Each call opens a connection of its own, works in one transaction and closes it, so threads, processes and a reset in
the middle need no further agreement. A file that is new, or has another format, is seeded by whoever opens it first.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from ai_platform_engineering.sandbox.records import Company, Record
from ai_platform_engineering.sandbox.seed import seed_records
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.sqlite.shared_file import write_ahead
from ai_platform_engineering.utils.private_files import create_private_file

FORMAT = 1
BUSY_SECONDS = 10.0

R = TypeVar("R", bound=Record)


class WorldError(Exception):
    """The file cannot be used; the text names it and the way out."""


def world_path(data_dir: Path) -> Path:
    return data_dir / "sandbox.db"


def reset_world(path: Path) -> None:
    """Seed the world anew, also while others use it. A file that is no world at all is replaced."""
    try:
        try:
            _reseed(path)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            for suffix in ("", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            _reseed(path)
    except (sqlite3.Error, OSError) as error:
        raise WorldError(f"The sandbox world {path} could not be reset: {error}.") from error


class Session:
    """One transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def all(self, kind: type[R]) -> list[R]:
        rows = self._connection.execute("SELECT body FROM record WHERE kind = ? ORDER BY key", (kind.__name__,))
        return [kind.model_validate_json(body) for (body,) in rows]

    def find(self, kind: type[R], key: str) -> R | None:
        """The record with this key; upper and lower case are the same."""
        row = self._connection.execute(
            "SELECT body FROM record WHERE kind = ? AND key = ? COLLATE NOCASE", (kind.__name__, key)
        ).fetchone()
        return None if row is None else kind.model_validate_json(row[0])

    def put(self, record: Record) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO record (kind, key, body) VALUES (?, ?, ?)",
            (type(record).__name__, record.key, record.model_dump_json()),
        )

    def company(self) -> Company:
        company = self.find(Company, "company")
        if company is None:
            raise WorldError("The sandbox world has no company in it. `platform-engineer sandbox reset` seeds it anew.")
        return company

    def tick(self) -> datetime:
        """The time of a change: the company's clock moves one minute with each, so a run can be repeated exactly."""
        company = self.company()
        now = company.now + timedelta(minutes=1)
        self.put(company.but(now=now))
        return now


@dataclass(frozen=True)
class World:
    path: Path

    @classmethod
    def of(cls, settings: Settings) -> World:
        return cls(world_path(settings.data_dir))

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One consistent view of the world."""
        with self._transaction("BEGIN") as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A change: all of it or, when the block raises, nothing."""
        with self._transaction("BEGIN IMMEDIATE") as session:
            yield session

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Session]:
        try:
            with closing(_connect(self.path)) as connection:
                if not _is_seeded(connection):
                    _seed(connection)
                connection.execute(begin)
                try:
                    yield Session(connection)
                except BaseException:
                    _roll_back(connection)
                    raise
                connection.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            raise WorldError(
                f"The sandbox world {self.path} cannot be used: {error}. "
                "Check that the data directory can be written, or seed it anew with `platform-engineer sandbox reset`."
            ) from error


def _connect(path: Path) -> sqlite3.Connection:
    create_private_file(path)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _is_seeded(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == FORMAT)


def _reseed(path: Path) -> None:
    with closing(_connect(path)) as connection:
        _seed(connection, anew=True)


def _seed(connection: sqlite3.Connection, *, anew: bool = False) -> None:
    records = seed_records()
    write_ahead(connection, BUSY_SECONDS)
    connection.execute("BEGIN IMMEDIATE")
    try:
        if anew or not _is_seeded(connection):
            connection.execute("DROP TABLE IF EXISTS record")
            connection.execute(
                "CREATE TABLE record (kind TEXT NOT NULL, key TEXT NOT NULL, body TEXT NOT NULL,"
                " PRIMARY KEY (kind, key)) WITHOUT ROWID"
            )
            session = Session(connection)
            for record in records:
                session.put(record)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
    except BaseException:
        _roll_back(connection)
        raise
    connection.execute("COMMIT")


def _roll_back(connection: sqlite3.Connection) -> None:
    """SQLite ends the transaction by itself on some errors, a full disk among them."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")
