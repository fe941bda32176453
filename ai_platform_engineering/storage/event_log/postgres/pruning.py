"""Deletes ended tasks from the log in Postgres: those that are too old or too many, or those of one conversation."""

from __future__ import annotations

from typing import Final, LiteralString

from ai_platform_engineering.storage.event_log.pruning import Pruned
from ai_platform_engineering.storage.postgres.async_connections import Connection

_BATCH: Final = 50

# The parts of a statement see the tables as they were before it.
_OTHERS: Final[LiteralString] = """
    SELECT FROM event_log.task AS other
    WHERE other.server = %(server)s AND other.context_id = {context_id}
        AND other.number NOT IN (SELECT number FROM chosen)
"""
_DELETE: Final[LiteralString] = f"""
, access AS (
    DELETE FROM event_log.access
    WHERE server = %(server)s AND context_id IN (SELECT context_id FROM chosen)
        AND NOT EXISTS ({_OTHERS.format(context_id="access.context_id")})
)
, tasks AS (DELETE FROM event_log.task WHERE number IN (SELECT number FROM chosen))
, events AS (DELETE FROM event_log.event WHERE task IN (SELECT number FROM chosen))
, messages AS (DELETE FROM event_log.message WHERE task IN (SELECT number FROM chosen))
, effects AS (DELETE FROM event_log.effect WHERE task IN (SELECT number FROM chosen))
SELECT id, context_id, EXISTS ({_OTHERS.format(context_id="chosen.context_id")}) FROM chosen
"""
_PRUNE: Final[LiteralString] = f"""
WITH ended AS (
    SELECT number, id, context_id, ended_ns, row_number() OVER (ORDER BY ended_ns, number) AS place
    FROM event_log.task WHERE server = %(server)s AND ended_ns IS NOT NULL ORDER BY ended_ns, number LIMIT {_BATCH}
), chosen AS MATERIALIZED (
    SELECT number, id, context_id FROM ended WHERE ended_ns < %(oldest_ns)s OR place <= (
        SELECT count(*) FROM event_log.task WHERE server = %(server)s AND ended_ns IS NOT NULL
    ) - %(max_tasks)s
), names AS (
    DELETE FROM event_log.conversation
    WHERE server = %(server)s AND context_id IN (SELECT context_id FROM chosen)
        AND NOT EXISTS ({_OTHERS.format(context_id="conversation.context_id")})
) {_DELETE}
"""
_DELETE_CONVERSATION: Final[LiteralString] = f"""
WITH chosen AS MATERIALIZED (
    SELECT number, id, context_id FROM event_log.task
    WHERE server = %(server)s AND context_id = %(context_id)s AND ended_ns IS NOT NULL
), names AS (
    DELETE FROM event_log.conversation WHERE server = %(server)s AND context_id = %(context_id)s
) {_DELETE}
"""


async def prune_some(connection: Connection, server: str, max_tasks: int, oldest_ns: int) -> Pruned:
    """Delete a few of the tasks that ended before `oldest_ns` or are not among the last `max_tasks` to end."""
    cursor = await connection.execute(_PRUNE, {"server": server, "max_tasks": max_tasks, "oldest_ns": oldest_ns})
    rows = await cursor.fetchall()
    left = frozenset(context_id for _, context_id, is_left in rows if not is_left)
    return Pruned(tuple(task_id for task_id, _, _ in rows), left)


async def delete_ended(connection: Connection, server: str, context_id: str) -> list[str]:
    """Delete the ended tasks of a conversation and its name. Returns the ids of the tasks."""
    cursor = await connection.execute(_DELETE_CONVERSATION, {"server": server, "context_id": context_id})
    return [task_id for task_id, _, _ in await cursor.fetchall()]
