"""LangGraph's `AsyncPostgresSaver`: its tables, written and trimmed with SQL.

The tables are not documented. The saver writes a checkpoint with a statement for each value, in a pipeline that costs
more than all of the statements. Its `aprune` keeps the checkpoints of nested graphs whose parent was not stored, which
is the rule with the durability `exit`, and it deletes a conversation's earlier checkpoints while a form is open.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, LiteralString

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from psycopg import AsyncConnection

from ai_platform_engineering.compat.langgraph import INTERRUPT_CHANNEL, DependencyChangedError

_COLUMNS: Final[Mapping[str, frozenset[str]]] = {
    "checkpoints": frozenset(
        {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"}
    ),
    "checkpoint_blobs": frozenset({"thread_id", "checkpoint_ns", "channel", "version", "type", "blob"}),
    "checkpoint_writes": frozenset(
        {"thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "task_path", "idx", "channel", "type", "blob"}
    ),
}

# `allowed` has one row, or none if nothing may be written.
_PUT: Final[LiteralString] = """
WITH allowed AS MATERIALIZED ({condition}), stored_values AS (
    INSERT INTO checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    SELECT %(thread)s, %(namespace)s, item ->> 0, item ->> 1, item ->> 2, body
    FROM allowed, ROWS FROM (json_array_elements(%(items)s::json), unnest(%(bodies)b::bytea[])) AS value (item, body)
    ON CONFLICT (thread_id, checkpoint_ns, channel, version) DO NOTHING
), stored AS (
    INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
    SELECT %(thread)s, %(namespace)s, %(id)s, %(parent)s, %(checkpoint)s::jsonb, %(metadata)s::jsonb FROM allowed
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id)
    DO UPDATE SET checkpoint = EXCLUDED.checkpoint, metadata = EXCLUDED.metadata
)
SELECT 1 FROM allowed
"""
_PUT_WRITES: Final[LiteralString] = """
WITH allowed AS MATERIALIZED ({condition}), stored AS (
    INSERT INTO checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    SELECT %(thread)s, %(namespace)s, %(id)s, %(task)s, %(path)s, (item ->> 0)::int, item ->> 1, item ->> 2, body
    FROM allowed, ROWS FROM (json_array_elements(%(items)s::json), unnest(%(bodies)b::bytea[])) AS write (item, body)
    ON CONFLICT (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) DO {conflict}
)
SELECT 1 FROM allowed
"""
_REPLACE: Final[LiteralString] = "UPDATE SET channel = EXCLUDED.channel, type = EXCLUDED.type, blob = EXCLUDED.blob"

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


@dataclass(frozen=True, slots=True)
class Condition:
    """A query that returns one row if something may be written, else none. Its parameters begin with `run_`."""

    query: LiteralString
    parameters: Mapping[str, Any]


ALWAYS: Final = Condition("SELECT 1", MappingProxyType({}))


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


async def put(
    connection: _Connection,
    serializer: SerializerProtocol,
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    condition: Condition,
) -> bool:
    """Store a checkpoint and its values with new versions, as the saver does, in one statement.

    False, and nothing stored, if the condition does not hold.
    """
    inlined: dict[str, Any] = {}
    items: list[tuple[str, str, str]] = []
    bodies: list[bytes] = []
    for channel, value in checkpoint["channel_values"].items():
        if value is None or isinstance(value, str | int | float):
            inlined[channel] = value
            continue
        if isinstance(value, _DeltaSnapshot):
            inlined[channel] = True
        if channel in new_versions:
            kind, body = serializer.dumps_typed(value)
            items.append((channel, str(checkpoint["channel_versions"][channel]), kind))
            bodies.append(body)
    parameters = {
        **condition.parameters,
        **_place(config),
        "id": checkpoint["id"],
        "parent": get_checkpoint_id(config),
        "checkpoint": json.dumps({**checkpoint, "channel_values": inlined}),
        "metadata": json.dumps(get_serializable_checkpoint_metadata(config, metadata)),
        "items": json.dumps(items),
        "bodies": bodies,
    }
    cursor = await connection.execute(_PUT.format(condition=condition.query), parameters)
    return cursor.rowcount > 0


async def put_writes(
    connection: _Connection,
    serializer: SerializerProtocol,
    config: RunnableConfig,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    condition: Condition,
) -> bool:
    """Store the writes of a task, as the saver does, in one statement. False if the condition does not hold."""
    by_index = {WRITES_IDX_MAP.get(channel, index): (channel, value) for index, (channel, value) in enumerate(writes)}
    items: list[tuple[int, str, str]] = []
    bodies: list[bytes] = []
    for index, (channel, value) in by_index.items():
        kind, body = serializer.dumps_typed(value)
        items.append((index, channel, kind))
        bodies.append(body)
    parameters = {
        **condition.parameters,
        **_place(config),
        "id": get_checkpoint_id(config),
        "task": task_id,
        "path": task_path,
        "items": json.dumps(items),
        "bodies": bodies,
    }
    conflict = _REPLACE if all(channel in WRITES_IDX_MAP for channel, _ in writes) else "NOTHING"
    cursor = await connection.execute(_PUT_WRITES.format(condition=condition.query, conflict=conflict), parameters)
    return cursor.rowcount > 0


def _place(config: RunnableConfig) -> dict[str, Any]:
    configurable = config["configurable"]
    return {"thread": configurable["thread_id"], "namespace": configurable.get("checkpoint_ns", "")}


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
