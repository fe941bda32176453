"""Which tasks a log file gives up: ended ones that are too old or too many. Running and waiting ones never."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final

_AT_ONCE: Final = 20


@dataclass(frozen=True, slots=True)
class Pruned:
    task_ids: tuple[str, ...]
    conversations: frozenset[str]
    """Those of which no task is left."""


def prune_some(connection: sqlite3.Connection, max_tasks: int, oldest_ns: int) -> Pruned:
    """Delete a few of the tasks that ended before `oldest_ns` or are not among the last `max_tasks` to end."""
    surplus = connection.execute("SELECT count(*) FROM task WHERE ended_ns IS NOT NULL").fetchone()[0] - max_tasks
    rows = connection.execute(
        "SELECT number, id, context_id FROM ("
        " SELECT number, id, context_id, ended_ns, row_number() OVER (ORDER BY ended_ns, number) AS place"
        " FROM (SELECT * FROM task WHERE ended_ns IS NOT NULL ORDER BY ended_ns, number LIMIT ?)"
        ") WHERE place <= ? OR ended_ns < ?",
        (_AT_ONCE, surplus, oldest_ns),
    ).fetchall()
    for number, _, _ in rows:
        connection.execute("DELETE FROM event WHERE task = ?", (number,))
        connection.execute("DELETE FROM message WHERE task = ?", (number,))
        connection.execute("DELETE FROM task WHERE number = ?", (number,))
    conversations = {context_id for _, _, context_id in rows}
    left = {
        context_id
        for context_id in conversations
        if connection.execute("SELECT 1 FROM task WHERE context_id = ? LIMIT 1", (context_id,)).fetchone()
    }
    return Pruned(tuple(task_id for _, task_id, _ in rows), frozenset(conversations - left))
