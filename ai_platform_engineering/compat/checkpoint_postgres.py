"""LangGraph's `AsyncPostgresSaver`: its tables, trimmed with SQL.

The tables are not documented. The saver's `aprune` keeps the checkpoints of nested graphs whose parent was not stored,
which is the rule with the durability `exit`, and it deletes a conversation's earlier checkpoints while a form is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, LiteralString

from psycopg import AsyncConnection

from ai_platform_engineering.compat.langgraph import INTERRUPT_CHANNEL, DependencyChangedError

_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "checkpoints": frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "checkpoint"}),
    "checkpoint_blobs": frozenset({"thread_id", "checkpoint_ns", "channel", "version"}),
    "checkpoint_writes": frozenset({"thread_id", "checkpoint_ns", "checkpoint_id", "channel"}),
}

_KEEP_LATEST: Final[LiteralString] = """
WITH last AS (
    SELECT c.checkpoint_id, c.checkpoint -> 'channel_versions' AS versions, EXISTS (
        SELECT 1 FROM checkpoint_writes w
        WHERE w.thread_id = c.thread_id AND w.checkpoint_ns = '' AND w.checkpoint_id = c.checkpoint_id
        AND w.channel = %(interrupt)s
    ) AS waiting
    FROM checkpoints c WHERE c.thread_id = %(thread)s AND c.checkpoint_ns = ''
    ORDER BY c.checkpoint_id DESC LIMIT 1
), ended AS (
    SELECT checkpoint_id, versions FROM last WHERE NOT waiting
), old_checkpoints AS (
    DELETE FROM checkpoints c USING ended
    WHERE c.thread_id = %(thread)s AND (c.checkpoint_ns <> '' OR c.checkpoint_id < ended.checkpoint_id)
), old_writes AS (
    DELETE FROM checkpoint_writes w USING ended
    WHERE w.thread_id = %(thread)s AND (w.checkpoint_ns <> '' OR w.checkpoint_id < ended.checkpoint_id)
), old_values AS (
    DELETE FROM checkpoint_blobs b USING ended
    WHERE b.thread_id = %(thread)s
    AND (b.checkpoint_ns <> '' OR ended.versions ->> b.channel IS DISTINCT FROM b.version)
)
SELECT waiting FROM last
"""
_DROP_INTERRUPT: Final[LiteralString] = """
WITH last AS (
    SELECT max(checkpoint_id) AS checkpoint_id FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns = ''
), writes AS (
    DELETE FROM checkpoint_writes w USING last
    WHERE w.thread_id = %(thread)s AND (w.checkpoint_ns <> '' OR w.checkpoint_id = last.checkpoint_id)
), nested_values AS (
    DELETE FROM checkpoint_blobs WHERE thread_id = %(thread)s AND checkpoint_ns <> ''
)
DELETE FROM checkpoints WHERE thread_id = %(thread)s AND checkpoint_ns <> ''
"""
_IDLE: Final[LiteralString] = "SELECT thread_id FROM checkpoints GROUP BY thread_id HAVING max(checkpoint_id) < %s"

_Connection = AsyncConnection[dict[str, Any]]


async def check_tables(connection: _Connection) -> None:
    """Raise unless the saver's tables have the columns used here."""
    found = await connection.execute(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND table_name = ANY(%s)",
        ([*_COLUMNS],),
    )
    columns: dict[str, set[str]] = {table: set() for table in _COLUMNS}
    for row in await found.fetchall():
        columns[row["table_name"]].add(row["column_name"])
    for table, needed in _COLUMNS.items():
        if missing := needed - columns[table]:
            change = f"AsyncPostgresSaver's table {table} lacks the columns {sorted(missing)}"
            raise DependencyChangedError("langgraph-checkpoint-postgres", change, "checkpoint_postgres.py")


async def keep_latest(connection: _Connection, thread_id: str) -> bool:
    """Delete all but the last checkpoint of a thread; false, and nothing deleted, if that waits for an answer."""
    cursor = await connection.execute(_KEEP_LATEST, {"thread": thread_id, "interrupt": INTERRUPT_CHANNEL})
    last = await cursor.fetchone()
    return last is None or not last["waiting"]


async def drop_interrupt(connection: _Connection, thread_id: str) -> None:
    """Delete the pending writes of a thread's last checkpoint, and the checkpoints of nested graphs."""
    await connection.execute(_DROP_INTERRUPT, {"thread": thread_id})


async def idle_threads(connection: _Connection, oldest_id: str) -> list[str]:
    """Threads whose last checkpoint is older than `oldest_id`."""
    return [row["thread_id"] for row in await (await connection.execute(_IDLE, (oldest_id,))).fetchall()]
