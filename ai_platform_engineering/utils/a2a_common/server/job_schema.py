"""The tables of the job queue in Postgres. The first process creates them, and a newer version updates them."""

from __future__ import annotations

from typing import Any, Final, LiteralString

from psycopg import AsyncConnection

from ai_platform_engineering.compat.procrastinate import schema_statements, schema_version
from ai_platform_engineering.utils.errors import ReadableError

_SETUP_LOCK: Final = 0x6A6F6273
_REVISION: Final = 1
"""Of our own trigger. Raise it when the trigger changes."""


class ForeignJobTablesError(ReadableError):
    """Another application has created tables of Procrastinate in the database."""

    def __init__(self, database: str) -> None:
        super().__init__(
            f"The database {database!r} has tables of Procrastinate that another application created. Give the "
            "supervisor a database of its own."
        )


async def create_job_tables(conninfo: str) -> None:
    """Create or update the tables, in one process at a time."""
    current = f"{schema_version()}+{_REVISION}"
    async with await AsyncConnection.connect(conninfo) as connection:
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP_LOCK,))
        await connection.execute("CREATE TABLE IF NOT EXISTS platform_engineer_job_schema (version TEXT NOT NULL)")
        stored = await _value(connection, "SELECT version FROM platform_engineer_job_schema")
        if stored is not None and stored >= current:
            return
        if stored is None and await _value(connection, "SELECT to_regclass('procrastinate_jobs')") is not None:
            raise ForeignJobTablesError(connection.info.dbname)
        for statements in schema_statements(stored and stored.partition("+")[0]):
            await connection.execute(statements)
        await connection.execute("DELETE FROM platform_engineer_job_schema")
        await connection.execute("INSERT INTO platform_engineer_job_schema VALUES (%s)", (current,))


async def _value(connection: AsyncConnection[Any], query: LiteralString) -> str | None:
    row = await (await connection.execute(query)).fetchone()
    return None if row is None or row[0] is None else str(row[0])
