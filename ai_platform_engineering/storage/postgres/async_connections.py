"""Connections for code on an event loop, with time limits: no statement and no transaction can hang for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, LiteralString

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from ai_platform_engineering.storage.postgres.connections import is_quiet, store_any_text

Connection = AsyncConnection[tuple[Any, ...]]

STATEMENT_SECONDS: Final = 15
"""The server cancels a statement that takes longer, also one that waits for a lock."""

# A process that is suspended in the middle of a transaction must not keep its locks: others wait for them. The limit
# for idle connections does not apply to a pipeline that is suspended before its end; the other one does.
_IDLE_LIMIT: Final[LiteralString] = "SELECT set_config('idle_in_transaction_session_timeout', '5s', false)"
_STATEMENT_LIMIT: Final[LiteralString] = f"SELECT set_config('statement_timeout', '{STATEMENT_SECONDS}s', false)"
_TRANSACTION_LIMIT: Final[LiteralString] = "SELECT set_config('transaction_timeout', '20s', false)"
_HAS_TRANSACTION_LIMIT: Final = 170000


async def connect(conninfo: str) -> Connection:
    """A connection in autocommit mode."""
    opening = asyncio.ensure_future(_open(conninfo))
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        # psycopg does not close a connection if it is cancelled while it connects. The connection timeout bounds this.
        with suppress(psycopg.Error, OSError):
            await (await opening).close()
        raise


async def _open(conninfo: str) -> Connection:
    connection: Connection = await AsyncConnection.connect(conninfo, autocommit=True)
    try:
        await _configure(connection)
    except BaseException:
        await connection.close()
        raise
    return connection


class AsyncPool:
    """Connections for short queries, opened on demand.

    Unlike the pool of psycopg, it reports at once that the server cannot be reached, and has no background tasks.
    """

    def __init__(self, conninfo: str, max_connections: int) -> None:
        self._conninfo = conninfo
        self._slots = asyncio.Semaphore(max_connections)
        self._idle: list[Connection] = []

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection in autocommit mode. It is closed if the block raises: the query may still run."""
        async with self._slots:
            connection = self._idle.pop() if self._idle else await connect(self._conninfo)
            try:
                yield connection
            except BaseException:
                await connection.close()
                raise
            self._idle.append(connection)

    async def close_idle(self) -> None:
        """Call this when a connection was broken: the others may be broken, too."""
        while self._idle:
            await self._idle.pop().close()


def checked_pool(**options: Any) -> AsyncConnectionPool[AsyncConnection[Any]]:
    """The pool of psycopg, for Procrastinate, which checks each connection before use with a query of its own.

    Here only a connection that the server may have closed is checked.
    """
    return AsyncConnectionPool(**{**options, "check": _check})


async def _check(connection: AsyncConnection[Any]) -> None:
    if not is_quiet(connection):
        await AsyncConnectionPool.check_connection(connection)


async def _configure(connection: Connection) -> None:
    store_any_text(connection)
    await connection.execute(_STATEMENT_LIMIT)
    await limit_transactions(connection)


async def limit_transactions(connection: AsyncConnection[Any]) -> None:
    """Let the server end a transaction that takes too long. The connection must be in autocommit mode."""
    await connection.execute(_IDLE_LIMIT)
    if connection.info.server_version >= _HAS_TRANSACTION_LIMIT:
        await connection.execute(_TRANSACTION_LIMIT)
