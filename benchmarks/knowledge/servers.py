"""The settings with which the product opens the measured stores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg

from benchmarks.databases import postgres
from tests.services.postgres import new_database


@dataclass(frozen=True, slots=True)
class TemporaryStore:
    """A knowledge base that starts empty and is deleted at the end."""

    environ: Mapping[str, str]

    def megabytes(self) -> float:
        """Its size on disk."""
        if address := self.environ.get("RAG_DATABASE_URL"):
            with psycopg.connect(address) as connection:
                row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
            assert row is not None
            return int(row[0]) / 1e6
        return sum(file.stat().st_size for file in Path(self.environ["DATA_DIR"]).glob("knowledge.db*")) / 1e6


@contextmanager
def in_a_file() -> Iterator[TemporaryStore]:
    with TemporaryDirectory() as folder:
        yield TemporaryStore({"DATA_DIR": folder})


@contextmanager
def in_postgres() -> Iterator[TemporaryStore | None]:
    """In the server of `TEST_POSTGRES_URL`, or in one that is started here. None if Postgres is not installed."""
    with TemporaryDirectory() as folder, postgres() as server:
        if server is None:
            yield None
            return
        with new_database(server.address) as database:
            yield TemporaryStore({"DATA_DIR": folder, "RAG_DATABASE_URL": database})
