"""The servers as fixtures: one server for the session, and in it a new database for each test.

Test modules take them with `pytest_plugins = ("tests.services.fixtures",)`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.local_server import LocalServer
from tests.services.mongodb import mongodb_server
from tests.services.postgres import PostgresServer, new_database, postgres_server
from tests.services.redis import redis_server

_IN_MEMORY = Path("/dev/shm")  # noqa: S108 - each server has a directory of its own there
_MIN_FREE_BYTES = 4_000_000_000


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """Its files are in memory where there is space: the 300 files of a new database cost more CPU on a disk."""
    has_space = _IN_MEMORY.is_dir() and shutil.disk_usage(_IN_MEMORY).free > _MIN_FREE_BYTES
    with postgres_server(_IN_MEMORY if has_space else None) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database from which others can be made: that of `TEST_POSTGRES_URL`, or of a server started here."""
    if address := os.environ.get("TEST_POSTGRES_URL"):
        yield address
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    yield server.address()


@pytest.fixture
def database(postgres_address: str) -> Iterator[str]:
    """The address of a new and empty database."""
    with new_database(postgres_address) as address:
        yield address


@pytest.fixture(scope="session")
def mongodb() -> Iterator[LocalServer]:
    with mongodb_server() as server:
        yield server


@pytest.fixture(scope="session")
def redis() -> Iterator[LocalServer]:
    with redis_server() as server:
        yield server
