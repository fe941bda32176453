"""Reading a log file: tasks and their events as they were kept. Used by the log itself and by the commands."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.storage.event_log.event_log import TaskQuery
from ai_platform_engineering.storage.event_log.file import WAITS
from ai_platform_engineering.storage.event_log.task_record import PackedEvent, TaskRecord

RUNNING: Final = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)


@dataclass(frozen=True, slots=True)
class StoredTask:
    number: int
    record: TaskRecord


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a listing. `task` is there for tasks that have ended."""

    id: str
    context_id: str
    state: TaskState
    created_ns: int
    changed_ns: int
    events: int
    submitted: Task
    task: Task | None


@dataclass(frozen=True, slots=True)
class Page:
    rows: list[Row]
    total: int
    has_more: bool


def read_task(connection: sqlite3.Connection, task_id: str) -> StoredTask | None:
    # One transaction, so that a task that is being written is seen as it was at one moment.
    connection.execute("BEGIN")
    try:
        row = connection.execute("SELECT number, submitted, folded FROM task WHERE id = ?", (task_id,)).fetchone()
        if row is None:
            return None
        number, submitted, folded = row
        events = connection.execute("SELECT is_status, body FROM event WHERE task = ? ORDER BY seq", (number,))
        packed = [PackedEvent(bool(is_status), body) for is_status, body in events]
        said = connection.execute("SELECT after, body FROM message WHERE task = ? ORDER BY place", (number,))
        messages = [(after, Message.FromString(body)) for after, body in said]
    finally:
        connection.execute("COMMIT")
    record = TaskRecord.stored(
        Task.FromString(submitted),
        packed,
        messages,
        Task.FromString(folded) if folded is not None else None,
    )
    return StoredTask(number, record)


def find_ids(connection: sqlite3.Connection, beginning: str) -> list[str]:
    """At most two tasks whose ids begin so; the one that is called exactly so, if there is one."""
    if connection.execute("SELECT 1 FROM task WHERE id = ?", (beginning,)).fetchone():
        return [beginning]
    rows = connection.execute(
        "SELECT id FROM task WHERE id >= ? AND substr(id, 1, ?) = ? ORDER BY id LIMIT 2",
        (beginning, len(beginning), beginning),
    )
    return [task_id for (task_id,) in rows]


def read_state(connection: sqlite3.Connection, task_id: str) -> TaskState | None:
    row = connection.execute("SELECT state FROM task WHERE id = ?", (task_id,)).fetchone()
    return None if row is None else row[0]


def read_ended(connection: sqlite3.Connection, task_id: str) -> tuple[int, Task] | None:
    """What became of a task that has ended, and the number of its last event, without its events."""
    row = connection.execute(
        "SELECT folded, (SELECT max(seq) FROM event WHERE event.task = task.number)"
        " FROM task WHERE id = ? AND folded IS NOT NULL",
        (task_id,),
    ).fetchone()
    return None if row is None else (row[1] or 0, Task.FromString(row[0]))


def read_times(connection: sqlite3.Connection, task_id: str) -> list[int]:
    """When each event was kept, in nanoseconds since the epoch; the task's beginning first."""
    rows = connection.execute(
        "SELECT created_ns FROM task WHERE id = :id UNION ALL"
        " SELECT at_ns FROM (SELECT at_ns FROM event JOIN task ON number = task WHERE id = :id ORDER BY seq)",
        {"id": task_id},
    )
    return [at for (at,) in rows]


def unfinished(connection: sqlite3.Connection) -> Iterator[str]:
    """Tasks that somebody worked on, or had been told to work on."""
    marks = ", ".join("?" * len(RUNNING))
    rows = connection.execute(
        f"SELECT id FROM task WHERE state IN ({marks}) OR (ended_ns IS NULL AND EXISTS"  # noqa: S608 - only "?"
        " (SELECT 1 FROM message WHERE message.task = task.number AND message.after ="
        " (SELECT max(seq) FROM event WHERE event.task = task.number))) ORDER BY number",
        RUNNING,
    ).fetchall()
    return (task_id for (task_id,) in rows)


def read_waiting(connection: sqlite3.Connection, context_id: str) -> str | None:
    """The task of a conversation that waits for a person and asked last."""
    row = connection.execute(
        f"SELECT id FROM task WHERE context_id = ? AND {WAITS} ORDER BY changed_ns DESC, number DESC LIMIT 1",  # noqa: S608
        (context_id,),
    ).fetchone()
    return None if row is None else row[0]


def read_overdue(connection: sqlite3.Connection, before_ns: int) -> list[str]:
    """Tasks that wait for a person and whose status last changed before that time, the oldest first."""
    rows = connection.execute(f"SELECT id FROM task WHERE {WAITS} AND changed_ns < ? ORDER BY changed_ns", (before_ns,))  # noqa: S608
    return [task_id for (task_id,) in rows]


def read_page(connection: sqlite3.Connection, query: TaskQuery) -> Page:
    conditions, values = _conditions(query)
    total: int = connection.execute(f"SELECT count(*) FROM task{_where(conditions)}", values).fetchone()[0]  # noqa: S608
    if query.after is not None:
        conditions.append("(changed_ns, id) < (?, ?)")
        values += query.after
    rows = connection.execute(
        "SELECT id, context_id, state, created_ns, changed_ns, submitted, folded,"  # noqa: S608
        " (SELECT max(seq) FROM event WHERE event.task = task.number)"
        f" FROM task{_where(conditions)} ORDER BY changed_ns DESC, id DESC LIMIT ?",
        [*values, query.limit + 1],
    ).fetchall()
    return Page([_row(row) for row in rows[: query.limit]], total, has_more=len(rows) > query.limit)


def _row(row: tuple[Any, ...]) -> Row:
    task_id, context_id, state, created_ns, changed_ns, submitted, folded, last = row
    task = None if folded is None else Task.FromString(folded)
    if task is not None and last:
        task.metadata.fields["seq"].number_value = last
    return Row(task_id, context_id, state, created_ns, changed_ns, last or 0, Task.FromString(submitted), task)


def _conditions(query: TaskQuery) -> tuple[list[str], list[Any]]:
    wanted: dict[str, Any] = {
        "context_id = ?": query.context_id,
        "state = ?": query.state,
        "changed_ns >= ?": query.changed_since_ns,
    }
    given = {condition: value for condition, value in wanted.items() if value is not None}
    return list(given), list(given.values())


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""
