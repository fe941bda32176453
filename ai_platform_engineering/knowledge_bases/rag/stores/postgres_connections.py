"""The connection pool of the Postgres store. Every database error is raised as a `KnowledgeStoreError`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from pgvector.psycopg import register_vector
from psycopg.types.string import StrBinaryDumper, StrDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from ai_platform_engineering.knowledge_bases.rag.stores.postgres_schema import KnowledgeBaseAddress, PgConnection
from ai_platform_engineering.knowledge_bases.rag.stores.store import KnowledgeStoreError

_MAX_CONNECTIONS: Final = 10
_WAIT_SECONDS: Final = 5.0


class PostgresConnections:
    def __init__(self, address: KnowledgeBaseAddress) -> None:
        self._address = address
        # Connections are checked before use, so a restart of the server goes unnoticed. The reconnect timeout is short,
        # because the pool's back-off would otherwise delay it after the server is back.
        self._pool: ConnectionPool[PgConnection] = ConnectionPool(
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
    def connection(self) -> Iterator[PgConnection]:
        """In autocommit mode."""
        try:
            with self._pool.connection() as connection:
                yield connection
        except PoolClosed as error:
            raise KnowledgeStoreError(f"The knowledge base in {self._address} is closed.") from error
        except PoolTimeout as error:
            # The pool does not report the cause. A direct connection raises it, if it fails as well.
            self._address.connect().close()
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


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> psycopg.abc.Buffer | None:
        return super().dump(_storable(obj))


class _BinaryTextDumper(StrBinaryDumper):
    def dump(self, obj: str) -> psycopg.abc.Buffer | None:
        return super().dump(_storable(obj))


def _storable(text: str) -> str:
    """Postgres text can contain neither NUL nor lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _configure(connection: PgConnection) -> None:
    connection.adapters.register_dumper(str, _TextDumper)
    connection.adapters.register_dumper(str, _BinaryTextDumper)
    register_vector(connection)
