"""The servers as fixtures: one server for the session, and in it a new database for each test.

Test modules take them with `pytest_plugins = ("tests.services.fixtures",)`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.services.local_server import LocalServer
from tests.services.mongodb import mongodb_server
from tests.services.postgres import PostgresServer, new_database, postgres_server
from tests.services.redis import redis_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
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
