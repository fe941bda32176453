"""The Postgres schema `job_queue`: the tables of Procrastinate, and a trigger of ours."""

from __future__ import annotations

from typing import Any, Final

from psycopg import AsyncConnection

from ai_platform_engineering.compat.procrastinate import NOTIFY_FREE_LOCK, procrastinate_schema
from ai_platform_engineering.storage.postgres.async_connections import limit_transactions
from ai_platform_engineering.storage.postgres.schema import Schema

_NAME: Final = "job_queue"

# Procrastinate names its tables without a schema.
JOB_SCHEMA: Final = Schema(_NAME, 1, f"SET LOCAL search_path TO {_NAME};{procrastinate_schema()}{NOTIFY_FREE_LOCK}")


async def use_job_schema(connection: AsyncConnection[Any]) -> None:
    """Let a connection find the tables. A suspended process must keep no locks, so each statement is a transaction."""
    await connection.set_autocommit(True)
    await connection.execute(f"SET search_path TO {_NAME}")
    await limit_transactions(connection)
