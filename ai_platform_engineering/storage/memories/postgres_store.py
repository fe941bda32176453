"""Memories in Postgres, in the table of LangGraph's store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from langgraph.store.postgres.aio import AsyncPostgresStore
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from ai_platform_engineering.settings import ADDRESS_VARIABLES, SettingsError
from ai_platform_engineering.storage.memories.langgraph_store import LangGraphStore
from ai_platform_engineering.storage.servers.errors import StoreError
from ai_platform_engineering.storage.servers.postgres import setup_lock
from ai_platform_engineering.utils.postgres_address import PostgresAddress

_CONNECTIONS: Final = 4
_CONNECTION_SECONDS: Final = 3.0
_SETUP_LOCK: Final = 0x6D656D6F72696573
_SETUP_SECONDS: Final = 60.0
_OPTIONS: Final[dict[str, Any]] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}

_Connection = AsyncConnection[dict[str, Any]]


class MemoriesAddress(PostgresAddress):
    setting = "LANGGRAPH_STORE_POSTGRES_DSN"
    purpose = "to store memories"
    error = SettingsError
    tables_gone = "Its tables are gone; restart the server, which creates them"


class SharedAddress(MemoriesAddress):
    """The server of the conversations."""

    setting = ADDRESS_VARIABLES["postgres"]


@asynccontextmanager
async def postgres_opened(address: MemoriesAddress) -> AsyncIterator[LangGraphStore]:
    def store_error(error: Exception) -> StoreError:
        if isinstance(error, psycopg.Error):
            return StoreError(address.reason(error), f"{address.way_out(error)}.")
        return StoreError(str(error.strerror if isinstance(error, OSError) else error))

    errors = (psycopg.Error, OSError)
    pool: AsyncConnectionPool[_Connection] = AsyncConnectionPool(
        address.conninfo,
        min_size=1,
        max_size=_CONNECTIONS,
        timeout=_CONNECTION_SECONDS,
        kwargs=_OPTIONS,
        # A connection may have been idle for hours, and closed by the server.
        check=AsyncConnectionPool.check_connection,
        open=False,
    )
    try:
        # Without the pool first, which would report a refused password as a timeout.
        async with (
            asyncio.timeout(_SETUP_SECONDS),
            await AsyncConnection.connect(address.conninfo, **_OPTIONS) as connection,
            setup_lock(connection, _SETUP_LOCK),
        ):
            await AsyncPostgresStore(connection).setup()
        await pool.open()
    except TimeoutError:
        raise StoreError(f"its tables could not be created within {_SETUP_SECONDS:g} seconds") from None
    except errors as error:
        raise store_error(error) from None
    try:
        yield LangGraphStore(AsyncPostgresStore(pool), (*errors, PoolTimeout), store_error)
    finally:
        await pool.close()
