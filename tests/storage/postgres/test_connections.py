"""The pool of connections."""

from __future__ import annotations

import threading

import psycopg
import pytest

from ai_platform_engineering.storage.postgres.connections import PostgresConnections
from ai_platform_engineering.utils.postgres_address import PostgresAddress

pytest_plugins = ("tests.services.fixtures",)

SECONDS = 30


class PoolError(Exception):
    pass


class PoolAddress(PostgresAddress):
    """`connect` is called when the pool has timed out."""

    setting = "POOL_DSN"
    purpose = "to test the pool"
    error = PoolError
    timed_out: threading.Event
    returned: threading.Event

    def connect(self) -> psycopg.Connection[tuple[object, ...]]:
        self.timed_out.set()
        assert self.returned.wait(SECONDS)
        return super().connect()


def address(database: str) -> PoolAddress:
    found = PoolAddress(database)
    found.timed_out, found.returned = threading.Event(), threading.Event()
    return found


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ai_platform_engineering.storage.postgres.connections._WAIT_SECONDS", 0.2)


def test_a_connection_that_is_free_again_after_the_timeout_is_used(database: str) -> None:
    pool_address = address(database)
    connections = PostgresConnections(pool_address, 1)

    def hold() -> None:
        with connections.connection():
            borrowed.set()
            assert pool_address.timed_out.wait(SECONDS)
        pool_address.returned.set()

    borrowed = threading.Event()
    holder = threading.Thread(target=hold)
    holder.start()
    assert borrowed.wait(SECONDS)
    with connections.connection() as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    holder.join()
    connections.close()


def test_a_pool_whose_connections_stay_in_use_says_so(database: str) -> None:
    pool_address = address(database)
    pool_address.returned.set()
    connections = PostgresConnections(pool_address, 1)
    with (
        connections.connection(),
        pytest.raises(PoolError, match="all connections are in use"),
        connections.connection(),
    ):
        pass
    connections.close()
