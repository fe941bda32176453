"""Deletes ended tasks: those that are too old or too many, or those of one conversation. Running and waiting tasks
stay."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_BATCH: Final = 20


@dataclass(frozen=True, slots=True)
class Pruned:
    task_ids: tuple[str, ...]
    conversations: frozenset[str]
    """Conversations without any task left."""


def prune_some(connection: sqlite3.Connection, max_tasks: int, oldest_ns: int) -> Pruned:
    """Delete a few of the tasks that ended before `oldest_ns` or are not among the last `max_tasks` to end."""
    surplus = connection.execute("SELECT count(*) FROM task WHERE ended_ns IS NOT NULL").fetchone()[0] - max_tasks
    rows = connection.execute(
        "SELECT number, id, context_id FROM ("
        " SELECT number, id, context_id, ended_ns, row_number() OVER (ORDER BY ended_ns, number) AS place"
        " FROM (SELECT * FROM task WHERE ended_ns IS NOT NULL ORDER BY ended_ns, number LIMIT ?)"
        ") WHERE place <= ? OR ended_ns < ?",
        (_BATCH, surplus, oldest_ns),
    ).fetchall()
    _delete(connection, [number for number, _, _ in rows])
    conversations = {context_id for _, _, context_id in rows}
    left = {
        context_id
        for context_id in conversations
        if connection.execute("SELECT 1 FROM task WHERE context_id = ? LIMIT 1", (context_id,)).fetchone()
    }
    gone = frozenset(conversations - left)
    for context_id in gone:
        _delete_name(connection, context_id)
        _delete_access(connection, context_id)
    return Pruned(tuple(task_id for _, task_id, _ in rows), gone)


def delete_ended(connection: sqlite3.Connection, context_id: str) -> list[str]:
    """Delete the ended tasks of a conversation and its name. Returns the ids of the tasks."""
    rows = connection.execute(
        "SELECT number, id FROM task WHERE context_id = ? AND ended_ns IS NOT NULL", (context_id,)
    ).fetchall()
    _delete(connection, [number for number, _ in rows])
    _delete_name(connection, context_id)
    if connection.execute("SELECT 1 FROM task WHERE context_id = ? LIMIT 1", (context_id,)).fetchone() is None:
        _delete_access(connection, context_id)
    return [task_id for _, task_id in rows]


def _delete_name(connection: sqlite3.Connection, context_id: str) -> None:
    connection.execute("DELETE FROM conversation WHERE context_id = ?", (context_id,))


def _delete_access(connection: sqlite3.Connection, context_id: str) -> None:
    connection.execute("DELETE FROM access WHERE context_id = ?", (context_id,))


def _delete(connection: sqlite3.Connection, numbers: Iterable[int]) -> None:
    for number in numbers:
        connection.execute("DELETE FROM event WHERE task = ?", (number,))
        connection.execute("DELETE FROM message WHERE task = ?", (number,))
        connection.execute("DELETE FROM effect WHERE task = ?", (number,))
        connection.execute("DELETE FROM task WHERE number = ?", (number,))
