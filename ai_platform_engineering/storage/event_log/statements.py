"""The writes of a log file that are more than one statement: tasks, messages, events, claims, names, access and
recorded effects."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence

from a2a.types.a2a_pb2 import Message, TaskStatusUpdateEvent

from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.storage.event_log.event_log import (
    Claim,
    ForeignConversationError,
    RecordedEffect,
    RepeatedMessageError,
)
from ai_platform_engineering.storage.event_log.reader import find_message, read_access
from ai_platform_engineering.storage.event_log.task_fold import ends_task
from ai_platform_engineering.storage.event_log.task_record import TaskRecord
from ai_platform_engineering.utils.a2a_common.wire import WireEvent, seq_of


def creation(
    number: int, record: TaskRecord, caller: Principal, groups: frozenset[str]
) -> Callable[[sqlite3.Connection], Exception | None]:
    """A write that inserts a task. It returns the error if the task must not be inserted."""
    task, now = record.submitted, time.time_ns()
    message_id = task.history[0].message_id if task.history else ""
    row = (
        number,
        task.id,
        task.context_id,
        task.status.state,
        now,
        record.fold.changed_ns,
        now if record.ended else None,
        task.SerializeToString(),
        message_id,
        _stored(caller),
    )

    def insert(connection: sqlite3.Connection) -> Exception | None:
        if not _admit(connection, task.context_id, caller, groups):
            return ForeignConversationError(task.context_id)
        found = _found(connection, task.context_id, message_id)
        if found not in (None, task.id):
            return RepeatedMessageError(message_id)
        cursor = connection.execute(
            "INSERT OR IGNORE INTO task"
            " (number, id, context_id, state, created_ns, changed_ns, ended_ns, submitted, message_id, caller)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        return None if cursor.rowcount == 1 else ValueError(f"the event log already has task {task.id!r}")

    return insert


def addition(
    number: int, context_id: str, after: int, message: Message, caller: Principal
) -> Callable[[sqlite3.Connection], Exception | None]:
    """A write that inserts a later message to a task. It returns the error if its conversation has the message."""
    row = (number, number, after, message.SerializeToString(), message.message_id, _stored(caller))

    def insert(connection: sqlite3.Connection) -> Exception | None:
        if _found(connection, context_id, message.message_id) is not None:
            return RepeatedMessageError(message.message_id)
        connection.execute(
            "INSERT INTO message (task, place, after, body, message_id, caller)"
            " VALUES (?, (SELECT count(*) FROM message WHERE task = ?), ?, ?, ?, ?)",
            row,
        )
        return None

    return insert


def insertion(number: int, events: Sequence[WireEvent]) -> Callable[[sqlite3.Connection], None]:
    """A write that inserts numbered events."""
    now = time.time_ns()
    rows = []
    change = None
    for event in events:
        is_status = isinstance(event, TaskStatusUpdateEvent)
        rows.append((number, seq_of(event), now, is_status, event.SerializeToString()))
        if isinstance(event, TaskStatusUpdateEvent):
            ended_ns = now if ends_task(event) else None
            change = (event.status.state, event.status.timestamp.ToNanoseconds(), ended_ns, number)

    def insert(connection: sqlite3.Connection) -> None:
        connection.executemany("INSERT INTO event (task, seq, at_ns, is_status, body) VALUES (?, ?, ?, ?, ?)", rows)
        if change is not None:
            connection.execute("UPDATE task SET state = ?, changed_ns = ?, ended_ns = ? WHERE number = ?", change)

    return insert


def claim(connection: sqlite3.Connection, number: int, progress: int) -> Claim:
    """Raise the epoch of a task. `attempts` starts again where the run has made progress since the last claim."""
    row = connection.execute(
        "UPDATE task SET epoch = epoch + 1, progress = :progress,"
        " attempts = CASE WHEN :progress > progress THEN 1 ELSE attempts + 1 END"
        " WHERE number = :number RETURNING epoch, attempts",
        {"number": number, "progress": progress},
    ).fetchone()
    return Claim(*row)


def rename(connection: sqlite3.Connection, context_id: str, name: str | None) -> bool:
    """Set or remove the name of a conversation. False if it has no task."""
    if connection.execute("SELECT 1 FROM task WHERE context_id = ? LIMIT 1", (context_id,)).fetchone() is None:
        return False
    if name is None:
        connection.execute("DELETE FROM conversation WHERE context_id = ?", (context_id,))
    else:
        connection.execute(
            "INSERT INTO conversation (context_id, name) VALUES (?, ?)"
            " ON CONFLICT (context_id) DO UPDATE SET name = excluded.name",
            (context_id, name),
        )
    return True


def share(connection: sqlite3.Connection, context_id: str, groups: frozenset[str]) -> bool:
    cursor = connection.execute(
        "UPDATE access SET groups = ? WHERE context_id = ?", (json.dumps(sorted(groups)), context_id)
    )
    return cursor.rowcount == 1


def begin_effect(
    connection: sqlite3.Connection, number: int, call_id: str, result: str | None
) -> RecordedEffect | None:
    row = connection.execute("SELECT result FROM effect WHERE task = ? AND call_id = ?", (number, call_id)).fetchone()
    if row is not None:
        return RecordedEffect(row[0])
    connection.execute("INSERT INTO effect (task, call_id, result) VALUES (?, ?, ?)", (number, call_id, result))
    return None


def finish_effect(connection: sqlite3.Connection, number: int, call_id: str, result: str) -> None:
    connection.execute("UPDATE effect SET result = ? WHERE task = ? AND call_id = ?", (result, number, call_id))


def _found(connection: sqlite3.Connection, context_id: str, message_id: str) -> str | None:
    """The task of a message in a conversation. Messages without an id are always new."""
    found = find_message(connection, context_id, message_id) if message_id else None
    return None if found is None else found.task_id


def _admit(connection: sqlite3.Connection, context_id: str, caller: Principal, groups: frozenset[str]) -> bool:
    """Whether the caller may add a task to a conversation, whose owner it becomes if there is none yet."""
    if not caller.owner:
        return True
    if (access := read_access(connection, context_id)) is not None:
        return access.allows(caller)
    connection.execute(
        "INSERT INTO access (context_id, owner, via, groups) VALUES (?, ?, ?, ?)",
        (context_id, caller.owner, caller.via, json.dumps(sorted(groups))),
    )
    return True


def _stored(caller: Principal) -> str | None:
    return None if caller == ANONYMOUS else caller.to_json()
