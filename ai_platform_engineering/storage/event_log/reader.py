"""Queries of a log file, for the log itself and for the commands."""

from __future__ import annotations

import asyncio
import json
import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.identity.access import UNOWNED, ConversationAccess, own_name, sees_everything
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.storage.event_log.conversations import (
    ConversationPage,
    ConversationQuery,
    ConversationRow,
    PageBuilder,
    TaskTexts,
)
from ai_platform_engineering.storage.event_log.event_log import FoundMessage, RecordedEffect, TaskQuery
from ai_platform_engineering.storage.event_log.file import WAITS, open_for_reading, unusable
from ai_platform_engineering.storage.event_log.log_errors import LogReadError
from ai_platform_engineering.storage.event_log.task_history import TaskHistory
from ai_platform_engineering.storage.event_log.task_record import PackedEvent, TaskRecord

_THREADS: Final = 2

logger = logging.getLogger(__name__)

T = TypeVar("T")

RUNNING: Final = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)


@dataclass(frozen=True, slots=True)
class StoredTask:
    number: int
    record: TaskRecord


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a listing. `task` is set for tasks that have ended."""

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


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """One transaction reads a consistent state of tasks that are being written."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("COMMIT")


def read_task(connection: sqlite3.Connection, task_id: str) -> StoredTask | None:
    with _transaction(connection):
        row = connection.execute("SELECT number, submitted, folded FROM task WHERE id = ?", (task_id,)).fetchone()
        if row is None:
            return None
        number, submitted, folded = row
        events = connection.execute("SELECT is_status, body FROM event WHERE task = ? ORDER BY seq", (number,))
        packed = [PackedEvent(bool(is_status), body) for is_status, body in events]
        rows = connection.execute("SELECT after, body FROM message WHERE task = ? ORDER BY place", (number,))
        messages = [(after, Message.FromString(body)) for after, body in rows]
    record = TaskRecord.stored(
        Task.FromString(submitted),
        packed,
        messages,
        Task.FromString(folded) if folded is not None else None,
    )
    return StoredTask(number, record)


def read_caller(connection: sqlite3.Connection, number: int) -> Principal:
    """The caller who sent the last message to a task."""
    row = (
        connection.execute(
            "SELECT caller FROM message WHERE task = ? ORDER BY place DESC LIMIT 1", (number,)
        ).fetchone()
        or connection.execute("SELECT caller FROM task WHERE number = ?", (number,)).fetchone()
    )
    return Principal.from_json(row[0])


def find_message(connection: sqlite3.Connection, context_id: str, message_id: str) -> FoundMessage | None:
    row = connection.execute(
        "SELECT id, 0 FROM task WHERE context_id = :context AND message_id = :message"
        " UNION ALL SELECT task.id, message.after FROM task JOIN message ON message.task = task.number"
        " WHERE task.context_id = :context AND message.message_id = :message LIMIT 1",
        {"context": context_id, "message": message_id},
    ).fetchone()
    return None if row is None else FoundMessage(*row)


def find_ids(connection: sqlite3.Connection, beginning: str) -> list[str]:
    """The task with this id; else at most two whose ids begin with it."""
    if connection.execute("SELECT 1 FROM task WHERE id = ?", (beginning,)).fetchone():
        return [beginning]
    rows = connection.execute(
        "SELECT id FROM task WHERE id >= ? AND substr(id, 1, ?) = ? ORDER BY id LIMIT 2",
        (beginning, len(beginning), beginning),
    )
    return [task_id for (task_id,) in rows]


def find_conversations(connection: sqlite3.Connection, beginning: str) -> list[str]:
    """The conversation with this id; else at most two whose ids begin with it."""
    if connection.execute("SELECT 1 FROM task WHERE context_id = ?", (beginning,)).fetchone():
        return [beginning]
    rows = connection.execute(
        "SELECT DISTINCT context_id FROM task WHERE context_id >= ? AND substr(context_id, 1, ?) = ?"
        " ORDER BY context_id LIMIT 2",
        (beginning, len(beginning), beginning),
    )
    return [context_id for (context_id,) in rows]


def read_conversations(connection: sqlite3.Connection, query: ConversationQuery) -> ConversationPage:
    builder = PageBuilder(query)
    with _transaction(connection):
        names = _names(connection)
        for context_id, tasks, created_ns, changed_ns in _conversation_keys(connection, query):
            state, first = connection.execute(
                "SELECT (SELECT state FROM task WHERE context_id = :id"
                " ORDER BY ended_ns IS NOT NULL, changed_ns DESC, number DESC LIMIT 1),"
                " (SELECT submitted FROM task WHERE context_id = :id ORDER BY number LIMIT 1)",
                {"id": context_id},
            ).fetchone()
            task, name = Task.FromString(first), names.get(context_id)
            row = ConversationRow(context_id, tasks, state, created_ns, changed_ns, task, name)
            builder.add(row, _conversation_texts(connection, context_id))
            if builder.is_complete:
                break
        page = builder.page()
        if query.viewer is None:
            return page  # a file that no server of this version has opened may have no owners
        rows = [replace(row, access=read_access(connection, row.id) or UNOWNED) for row in page.rows]
        return replace(page, rows=rows)


def read_effects(connection: sqlite3.Connection, task_id: str, prefix: str) -> dict[str, RecordedEffect]:
    rows = connection.execute(
        "SELECT call_id, result FROM effect WHERE task = (SELECT number FROM task WHERE id = ?)"
        " AND substr(call_id, 1, ?) = ?",
        (task_id, len(prefix), prefix),
    )
    return {call_id: RecordedEffect(result) for call_id, result in rows}


def read_name(connection: sqlite3.Connection, context_id: str) -> str | None:
    row = connection.execute("SELECT name FROM conversation WHERE context_id = ?", (context_id,)).fetchone()
    return None if row is None else row[0]


def read_access(connection: sqlite3.Connection, context_id: str) -> ConversationAccess | None:
    row = connection.execute("SELECT owner, via, groups FROM access WHERE context_id = ?", (context_id,)).fetchone()
    if row is not None:
        owner, via, groups = row
        return ConversationAccess(owner, via, frozenset(json.loads(groups)))
    task = connection.execute("SELECT 1 FROM task WHERE context_id = ? LIMIT 1", (context_id,)).fetchone()
    return None if task is None else UNOWNED


def _visible(viewer: Principal | None) -> tuple[list[str], list[Any]]:
    """The condition for tasks of conversations that the viewer may see, and its values."""
    if viewer is None or sees_everything(viewer):
        return [], []
    members = ", ".join("?" * len(viewer.groups))
    condition = (
        "context_id IN (SELECT context_id FROM access WHERE owner = ? OR via = ?"  # noqa: S608 - only "?"
        f" OR EXISTS (SELECT 1 FROM json_each(groups) WHERE value IN ({members})))"
    )
    return [condition], [viewer.owner, own_name(viewer), *viewer.groups]


def _names(connection: sqlite3.Connection) -> dict[str, str]:
    """The names of conversations by id. A file that no server of this version has opened has none."""
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'conversation'").fetchone() is None:
        return {}
    return dict(connection.execute("SELECT context_id, name FROM conversation"))


def _conversation_keys(connection: sqlite3.Connection, query: ConversationQuery) -> list[tuple[str, int, int, int]]:
    """Id, number of tasks, creation and last change of each conversation of the query, before it is searched."""
    conditions, values = _visible(query.viewer)
    after = "" if query.after is None else " HAVING (changed, context_id) < (?, ?)"
    return connection.execute(
        "SELECT context_id, count(*), min(created_ns), max(changed_ns) AS changed"  # noqa: S608
        f" FROM task{_where(conditions)} GROUP BY context_id{after} ORDER BY changed DESC, context_id DESC LIMIT ?",
        [*values, *(query.after or ()), -1 if query.words else query.limit + 1],
    ).fetchall()


def _conversation_texts(connection: sqlite3.Connection, context_id: str) -> Iterator[str]:
    rows = connection.execute(
        "SELECT submitted, (SELECT body FROM event WHERE event.task = task.number AND NOT is_status"
        " ORDER BY seq DESC LIMIT 1) FROM task WHERE context_id = ?",
        (context_id,),
    )
    for submitted, body in rows:
        yield from TaskTexts(Task.FromString(submitted), body and PackedEvent(is_status=False, body=body))


def read_histories(connection: sqlite3.Connection, context_id: str) -> list[TaskHistory]:
    """The tasks of a conversation, the oldest first."""
    with _transaction(connection):
        tasks = connection.execute(
            "SELECT number, submitted, state, created_ns, changed_ns FROM task WHERE context_id = ? ORDER BY number",
            (context_id,),
        ).fetchall()
        return [_history(connection, number, (*task,)) for number, *task in tasks]


def _history(connection: sqlite3.Connection, number: int, task: tuple[Any, ...]) -> TaskHistory:
    events = connection.execute("SELECT is_status, body, at_ns FROM event WHERE task = ? ORDER BY seq", (number,))
    messages = connection.execute("SELECT after, body, caller FROM message WHERE task = ? ORDER BY place", (number,))
    return TaskHistory.of_rows(task, events.fetchall(), messages)


def read_state(connection: sqlite3.Connection, task_id: str) -> TaskState | None:
    row = connection.execute("SELECT state FROM task WHERE id = ?", (task_id,)).fetchone()
    return None if row is None else row[0]


def read_ended(connection: sqlite3.Connection, task_id: str) -> tuple[int, Task] | None:
    """An ended task and the `seq` of its last event, without reading its events."""
    row = connection.execute(
        "SELECT folded, (SELECT max(seq) FROM event WHERE event.task = task.number)"
        " FROM task WHERE id = ? AND folded IS NOT NULL",
        (task_id,),
    ).fetchone()
    return None if row is None else (row[1] or 0, Task.FromString(row[0]))


def read_times(connection: sqlite3.Connection, task_id: str) -> list[int]:
    """The times of the task's creation and of each event, in nanoseconds since the epoch."""
    rows = connection.execute(
        "SELECT created_ns FROM task WHERE id = :id UNION ALL"
        " SELECT at_ns FROM (SELECT at_ns FROM event JOIN task ON number = task WHERE id = :id ORDER BY seq)",
        {"id": task_id},
    )
    return [at for (at,) in rows]


def unfinished(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """Tasks that run or are queued, and waiting tasks with a message that came after the last event."""
    placeholders = ", ".join("?" * len(RUNNING))
    return connection.execute(
        f"SELECT id, context_id FROM task WHERE state IN ({placeholders}) OR (ended_ns IS NULL AND EXISTS"  # noqa: S608 - only "?"
        " (SELECT 1 FROM message WHERE message.task = task.number AND message.after ="
        " (SELECT max(seq) FROM event WHERE event.task = task.number))) ORDER BY number",
        RUNNING,
    ).fetchall()


def read_waiting(connection: sqlite3.Connection, context_id: str) -> str | None:
    """The task of a conversation that waits for a person; the latest, if there are several."""
    row = connection.execute(
        f"SELECT id FROM task WHERE context_id = ? AND {WAITS} ORDER BY changed_ns DESC, number DESC LIMIT 1",  # noqa: S608
        (context_id,),
    ).fetchone()
    return None if row is None else row[0]


def read_overdue(connection: sqlite3.Connection, before_ns: int) -> list[str]:
    """Tasks that have waited for a person since before that time, the oldest first."""
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
    conditions, values = _visible(query.viewer)
    return [*given, *conditions], [*given.values(), *values]


def _where(conditions: list[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


class ReaderThreads:
    """Threads for queries, each with its own connection."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connections: list[sqlite3.Connection] = []
        self._local = threading.local()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="event-log-reader")

    async def run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, query)
        except sqlite3.DatabaseError as error:
            logger.error("%s", unusable(self._path, error))
            raise LogReadError("disk") from error

    def close(self) -> None:
        self._threads.shutdown()
        for connection in self._connections:
            connection.close()

    def _run(self, query: Callable[[sqlite3.Connection], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = open_for_reading(self._path, check_same_thread=False)
            self._local.connection = connection
            self._connections.append(connection)
        return query(connection)
