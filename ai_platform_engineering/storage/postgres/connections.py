"""A pool of connections to Postgres. Every database error is raised as the error of the address."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

import psycopg
from psycopg.types.string import StrBinaryDumper, StrDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from ai_platform_engineering.storage.postgres.schema import PgConnection, Schema
from ai_platform_engineering.utils.postgres_address import PostgresAddress

_WAIT_SECONDS: Final = 5.0


class PostgresConnections:
    """`configure` is called for each new connection."""

    def __init__(
        self,
        address: PostgresAddress,
        max_connections: int,
        configure: Callable[[PgConnection], None] = lambda _connection: None,
    ) -> None:
        self._address = address

        def configured(connection: PgConnection) -> None:
            store_any_text(connection)
            configure(connection)

        # Connections are checked before use, so a restart of the server goes unnoticed. The reconnect timeout is short,
        # because the pool's back-off would otherwise delay it after the server is back.
        self._pool: ConnectionPool[PgConnection] = ConnectionPool(
            address.conninfo,
            min_size=0,
            max_size=max_connections,
            timeout=_WAIT_SECONDS,
            reconnect_timeout=_WAIT_SECONDS / 2,
            num_workers=1,
            open=True,
            kwargs={"autocommit": True},
            configure=configured,
            check=_check,
        )

    @contextmanager
    def connection(self) -> Iterator[PgConnection]:
        """In autocommit mode."""
        try:
            connection = self._borrowed()
            try:
                with connection:
                    yield connection
            finally:
                self._pool.putconn(connection)
        except PoolClosed as error:
            raise self._address.unusable_because("it is closed", "Try again after a restart") from error
        except PoolTimeout as error:
            raise self._address.unusable_because("all connections are in use", "Try again later") from error
        except psycopg.Error as error:
            raise self._address.unusable(error) from error

    @contextmanager
    def writing(self) -> Iterator[PgConnection]:
        """In a transaction, which is rolled back if the block raises."""
        with self.connection() as connection, connection.transaction():
            yield connection

    def close(self) -> None:
        self._pool.close()

    def _borrowed(self) -> PgConnection:
        try:
            return self._pool.getconn()
        except PoolTimeout:
            # The pool does not report the cause. A direct connection raises it, if it fails as well.
            self._address.connect().close()
            # This process may have been suspended while it waited.
            return self._pool.getconn()


class SchemaConnections:
    """Connections to the tables of one store, which are created when the store is first used."""

    def __init__(self, address: PostgresAddress, schema: Schema, max_connections: int) -> None:
        self._address = address
        self._schema = schema
        self._max_connections = max_connections
        self._opening = Lock()
        self._connections: PostgresConnections | None = None

    @contextmanager
    def connection(self) -> Iterator[PgConnection]:
        """In autocommit mode."""
        with self._opening:
            if self._connections is None:
                self._schema.prepare(self._address)
                self._connections = PostgresConnections(self._address, self._max_connections)
            connections = self._connections
        with connections.connection() as connection:
            yield connection

    def close(self) -> None:
        """The next use opens new connections."""
        with self._opening:
            if self._connections is not None:
                self._connections.close()
                self._connections = None


def is_quiet(connection: psycopg.BaseConnection[Any]) -> bool:
    """Whether the server has sent nothing to an idle connection. If it has closed the connection, it has.

    Raises if the connection is closed on this side.
    """
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return not waiting.poll(0)


def _check(connection: PgConnection) -> None:
    if not is_quiet(connection):
        ConnectionPool.check_connection(connection)


def store_any_text(connection: psycopg.BaseConnection[Any]) -> None:
    """Replace characters that Postgres cannot store: NUL and lone surrogates."""
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_dumper(str, _BinaryTextDumper)


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> psycopg.abc.Buffer | None:
        return super().dump(storable(obj))


class _BinaryTextDumper(StrBinaryDumper):
    def dump(self, obj: str) -> psycopg.abc.Buffer | None:
        return super().dump(storable(obj))


def storable(text: str) -> str:
    """The text without characters that Postgres cannot store."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
