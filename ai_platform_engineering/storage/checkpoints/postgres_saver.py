"""A checkpointer that stores conversations in Postgres."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Final

import psycopg
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg import AsyncConnection
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from ai_platform_engineering.compat import checkpoint_postgres
from ai_platform_engineering.compat.checkpoint_postgres import ALWAYS, Condition
from ai_platform_engineering.compat.checkpoint_serializer import CheckpointSerializer
from ai_platform_engineering.compat.checkpoint_sqlite import checkpoint_config, first_id_since
from ai_platform_engineering.settings import ADDRESS_VARIABLES, SettingsError
from ai_platform_engineering.storage.checkpoints.fencing import FencedRun
from ai_platform_engineering.storage.checkpoints.server_saver import ServerSaver
from ai_platform_engineering.storage.event_log.event_log import SupersededError
from ai_platform_engineering.storage.event_log.postgres.schema import CLAIMED
from ai_platform_engineering.storage.postgres.async_connections import limit_transactions
from ai_platform_engineering.storage.servers.errors import StoreError
from ai_platform_engineering.storage.servers.postgres import setup_lock
from ai_platform_engineering.utils.postgres_address import PostgresAddress

_CONNECTIONS: Final = 8
_CONNECTION_SECONDS: Final = 5.0
_SETUP_LOCK: Final = 0x706C6174666F726D
_SETUP_SECONDS: Final = 60.0
_CONNECTION_OPTIONS: Final[dict[str, Any]] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}

_Connection = AsyncConnection[dict[str, Any]]


class ConversationsAddress(PostgresAddress):
    setting = ADDRESS_VARIABLES["postgres"]
    purpose = "to store conversations"
    error = SettingsError
    tables_gone = "Its tables are gone; restart the server, which creates them"


class PostgresSaver(ServerSaver):
    _errors: ClassVar = (psycopg.Error, OSError)

    def __init__(
        self, pool: AsyncConnectionPool[_Connection], address: ConversationsAddress, *, with_event_log: bool = False
    ) -> None:
        super().__init__(CheckpointSerializer())
        self._pool = pool
        self._address = address
        self._with_event_log = with_event_log
        # A saver has one operation at a time, so there is one for each connection.
        self._savers: list[BaseCheckpointSaver[Any]] = [AsyncPostgresSaver(pool) for _ in range(_CONNECTIONS)]

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, address: ConversationsAddress, *, with_event_log: bool = False
    ) -> AsyncIterator[PostgresSaver]:
        """If the database has the event log, too, a write of a claimed run checks the claim in its transaction."""
        pool: AsyncConnectionPool[_Connection] = AsyncConnectionPool(
            address.conninfo,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_CONNECTION_SECONDS,
            kwargs=_CONNECTION_OPTIONS,
            configure=limit_transactions,
            open=False,
        )
        saver = cls(pool, address, with_event_log=with_event_log)
        try:
            # Without the pool first, which would report a refused password as a timeout.
            async with (
                asyncio.timeout(_SETUP_SECONDS),
                await AsyncConnection.connect(address.conninfo, **_CONNECTION_OPTIONS) as connection,
            ):
                await _create_tables(connection)
            await pool.open()
        except TimeoutError:
            raise StoreError(f"its tables could not be created within {_SETUP_SECONDS:g} seconds") from None
        except saver._errors as error:
            raise saver._store_error(error) from None
        try:
            yield saver
        finally:
            await pool.close()

    async def ping(self) -> None:
        await self._run(self._select_one)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        await self._put(
            config,
            lambda connection, condition: checkpoint_postgres.put(
                connection, self.serde, config, checkpoint, metadata, new_versions, condition
            ),
        )
        return checkpoint_config(config, checkpoint)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        if writes:
            await self._put(
                config,
                lambda connection, condition: checkpoint_postgres.put_writes(
                    connection, self.serde, config, writes, task_id, task_path, condition
                ),
            )

    async def _put(self, config: RunnableConfig, put: Callable[[_Connection, Condition], Awaitable[bool]]) -> None:
        """Write with one statement, which locks the claim of a run: a process that claims the run waits for it."""
        run = FencedRun.of(config) if self._with_event_log else None
        condition = ALWAYS if run is None else Condition(CLAIMED, {"run_task": run.task_id, "run_epoch": run.epoch})

        async def write() -> bool:
            async with self._pool.connection() as connection:
                return await put(connection, condition)

        if not await self._run(write) and run is not None:
            raise SupersededError(run.task_id)

    async def keep_latest(self, thread_id: str) -> bool:
        async def keep() -> bool:
            async with self._pool.connection() as connection:
                return await checkpoint_postgres.keep_latest(connection, thread_id)

        return await self._run(keep)

    async def expire(self, max_age_minutes: float) -> None:
        oldest = first_id_since(time.time_ns() - int(max_age_minutes * 60e9))

        async def idle() -> list[str]:
            async with self._pool.connection() as connection:
                return await checkpoint_postgres.idle_threads(connection, oldest)

        await self.forget(await self._run(idle))

    async def _drop_interrupt(self, thread_id: str) -> None:
        async def drop() -> None:
            async with self._pool.connection() as connection:
                await checkpoint_postgres.drop_interrupt(connection, thread_id)

        await self._run(drop)

    async def _select_one(self) -> None:
        async with self._pool.connection() as connection:
            await connection.execute("SELECT 1")

    def _saver(self, thread_id: str) -> BaseCheckpointSaver[Any]:
        return self._savers[hash(thread_id) % _CONNECTIONS]

    async def _reconnected(self, error: Exception) -> bool:
        # Without the pool first: it reports a server that is gone only after a timeout.
        await (await AsyncConnection.connect(self._address.conninfo)).close()
        await self._pool.check()
        return True

    def _store_error(self, error: Exception) -> StoreError:
        if isinstance(error, psycopg.Error):
            return StoreError(self._address.reason(error), f"{self._address.way_out(error)}.")
        return StoreError(str(error.strerror if isinstance(error, OSError) else error))


async def _create_tables(connection: _Connection) -> None:
    """The saver's setup, in one process at a time."""
    async with setup_lock(connection, _SETUP_LOCK):
        await AsyncPostgresSaver(connection).setup()
        await checkpoint_postgres.check_tables(connection)
