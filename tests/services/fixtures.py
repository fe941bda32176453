"""The servers as fixtures: one server for the session, and in it a new database for each test.

Test modules take them with `pytest_plugins = ("tests.services.fixtures",)`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.services.postgres import new_database, postgres_server


@pytest.fixture(scope="session")
def postgres_address() -> Iterator[str]:
    """A database from which others can be made: that of `TEST_POSTGRES_URL`, or of a server started here."""
    if address := os.environ.get("TEST_POSTGRES_URL"):
        yield address
        return
    with postgres_server() as server:
        yield server.address()


@pytest.fixture
def database(postgres_address: str) -> Iterator[str]:
    """The address of a new and empty database."""
    with new_database(postgres_address) as address:
        yield address
