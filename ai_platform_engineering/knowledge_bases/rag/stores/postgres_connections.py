"""Connections to Postgres, shared by threads. Every failure leaves here as a `StoreError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from pgvector.psycopg import register_vector
from psycopg.types.string import StrBinaryDumper, StrDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from ai_platform_engineering.knowledge_bases.rag.stores.postgres_address import Address
from ai_platform_engineering.knowledge_bases.rag.stores.postgres_schema import Connection
from ai_platform_engineering.knowledge_bases.rag.stores.store import StoreError

_MAX_CONNECTIONS: Final = 10
_WAIT_SECONDS: Final = 5.0


class Connections:
    def __init__(self, address: Address) -> None:
        self._address = address
        # Checked before they are lent, so that a server that was restarted is not noticed. A pool that goes on trying
        # for long would also go on waiting when the server is back.
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            address.conninfo,
            min_size=0,
            max_size=_MAX_CONNECTIONS,
            timeout=_WAIT_SECONDS,
            reconnect_timeout=_WAIT_SECONDS / 2,
            num_workers=1,
            open=True,
            kwargs={"autocommit": True},
            configure=_configure,
            check=ConnectionPool.check_connection,
        )

    @contextmanager
    def lent(self) -> Iterator[Connection]:
        """Each statement is a transaction of its own, unless one is begun."""
        try:
            with self._pool.connection() as connection:
                yield connection
        except PoolClosed as error:
            raise StoreError(f"The knowledge base in {self._address} is closed.") from error
        except PoolTimeout as error:
            # The pool does not say why it has no connection; trying once more does.
            self._address.connect().close()
            raise self._address.unusable_because("all connections are in use", "Try again later") from error
        except psycopg.Error as error:
            raise self._address.unusable(error) from error

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """What is written in the block is kept whole or, when it raises, not at all."""
        with self.lent() as connection, connection.transaction():
            yield connection

    def close(self) -> None:
        self._pool.close()


class _Text(StrDumper):
    def dump(self, obj: str) -> psycopg.abc.Buffer | None:
        return super().dump(_storable(obj))


class _BinaryText(StrBinaryDumper):
    def dump(self, obj: str) -> psycopg.abc.Buffer | None:
        return super().dump(_storable(obj))


def _storable(text: str) -> str:
    """Postgres keeps neither NUL nor halves of surrogate pairs."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _configure(connection: Connection) -> None:
    connection.adapters.register_dumper(str, _Text)
    connection.adapters.register_dumper(str, _BinaryText)
    register_vector(connection)
