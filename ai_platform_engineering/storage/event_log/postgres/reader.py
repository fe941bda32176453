"""Queries of the log in Postgres, for the log itself and for the commands."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final, LiteralString

from a2a.types.a2a_pb2 import Message, Task, TaskState

from ai_platform_engineering.identity.access import ConversationAccess, own_name, sees_everything
from ai_platform_engineering.identity.principal import Principal
from ai_platform_engineering.storage.event_log.conversations import (
    ConversationPage,
    ConversationQuery,
    ConversationRow,
    PageBuilder,
    TaskTexts,
)
from ai_platform_engineering.storage.event_log.event_log import FoundMessage, RecordedEffect, StoredRequest, TaskQuery
from ai_platform_engineering.storage.event_log.postgres.schema import WAITS
from ai_platform_engineering.storage.event_log.reader import Page, Row
from ai_platform_engineering.storage.event_log.task_history import TaskHistory
from ai_platform_engineering.storage.event_log.task_record import PackedEvent, TaskRecord
from ai_platform_engineering.storage.postgres.async_connections import Connection
from ai_platform_engineering.storage.postgres.connections import storable

# Events and messages in the order in which they came. A message has the position of the event before it.
_HISTORY: Final[LiteralString] = """
SELECT seq AS position, 0 AS place, is_status, body FROM event_log.event WHERE task = {task} AND seq > {after}
UNION ALL
SELECT after, place + 1, NULL, body FROM event_log.message WHERE task = {task} AND place >= {messages}
"""
_LOAD: Final[LiteralString] = f"""
WITH found AS (SELECT number, last, submitted, folded FROM event_log.task WHERE id = %(id)s AND server = %(server)s)
SELECT position, place, is_status, body, NULL::bigint, NULL::bytea FROM (
    {_HISTORY.format(task="(SELECT number FROM found)", after="0", messages="0")}
) AS history
UNION ALL SELECT -1, last, NULL, submitted, number, folded FROM found
ORDER BY 1, 2
"""
_NEWS: Final[LiteralString] = f"""
SELECT * FROM ({_HISTORY.format(task="%(task)s", after="%(after)s", messages="%(messages)s")}) AS history
UNION ALL SELECT -1, 0, NULL, NULL FROM event_log.task WHERE number = %(task)s ORDER BY 1, 2
"""
_PAGE: Final[LiteralString] = (
    "SELECT id, context_id, state, created_ns, changed_ns, last, submitted, folded FROM event_log.task"
)
_FIND_MESSAGE: Final[LiteralString] = """
SELECT id, 0 FROM event_log.task
WHERE server = %(server)s AND context_id = %(context_id)s AND message_id = %(message_id)s
UNION ALL
SELECT task.id, message.after
FROM event_log.task AS task JOIN event_log.message AS message ON message.task = task.number
WHERE task.server = %(server)s AND task.context_id = %(context_id)s AND message.message_id = %(message_id)s
LIMIT 1
"""
_REQUEST: Final[LiteralString] = """
SELECT task.submitted, task.caller, message.body, message.caller, message.after
FROM event_log.task AS task LEFT JOIN event_log.message AS message
    ON message.task = task.number AND message.place = task.messages - 1
WHERE task.id = %(id)s AND task.server = %(server)s
"""
_VISIBLE: Final[LiteralString] = """
server = %(server)s AND (%(sees_everything)s OR context_id IN (
    SELECT context_id FROM event_log.access
    WHERE server = %(server)s AND (owner = %(owner)s OR via = %(bot)s OR groups && %(member_of)s::text[])
))
"""
_ACCESS: Final[LiteralString] = """
SELECT owner, via, groups FROM event_log.access WHERE server = %(server)s AND context_id = %(context_id)s
UNION ALL
(SELECT '', NULL, '{}' FROM event_log.task WHERE server = %(server)s AND context_id = %(context_id)s LIMIT 1)
LIMIT 1
"""
_CONVERSATIONS: Final[LiteralString] = f"""
SELECT listed.context_id, tasks, state, created_ns, changed_ns,
    (SELECT submitted FROM event_log.task AS first WHERE first.number = listed.first),
    (SELECT name FROM event_log.conversation AS named
        WHERE named.server = %(server)s AND named.context_id = listed.context_id),
    coalesce(access.owner, ''), access.via, coalesce(access.groups, '{{}}')
FROM (
    SELECT context_id, count(*) AS tasks, min(created_ns) AS created_ns, max(changed_ns) AS changed_ns,
        (array_agg(state ORDER BY ended_ns IS NOT NULL, changed_ns DESC, number DESC))[1] AS state,
        min(number) AS first
    FROM event_log.task WHERE {_VISIBLE} GROUP BY context_id
    HAVING %(after_ns)s::bigint IS NULL OR (max(changed_ns), context_id) < (%(after_ns)s::bigint, %(after_id)s)
    ORDER BY max(changed_ns) DESC, context_id DESC LIMIT %(limit)s
) AS listed
LEFT JOIN event_log.access AS access ON access.server = %(server)s AND access.context_id = listed.context_id
ORDER BY changed_ns DESC, listed.context_id DESC
"""
_TEXTS: Final[LiteralString] = """
SELECT context_id, submitted, (
    SELECT body FROM event_log.event WHERE event.task = task.number AND NOT is_status ORDER BY seq DESC LIMIT 1
) FROM event_log.task AS task WHERE server = %(server)s AND context_id = ANY(%(ids)s)
"""
_HISTORIES: Final[LiteralString] = """
SELECT number, last, messages, submitted, state, created_ns, changed_ns FROM event_log.task
WHERE server = %(server)s AND context_id = %(context_id)s ORDER BY number
"""
_SEARCHED_AT_ONCE: Final = 100
_TIMES: Final[LiteralString] = """
SELECT created_ns FROM event_log.task WHERE id = %(id)s AND server = %(server)s
UNION ALL (
    SELECT at_ns FROM event_log.event JOIN event_log.task ON number = task
    WHERE id = %(id)s AND server = %(server)s ORDER BY seq
)
"""

History = Sequence[tuple[int, int, bool | None, bytes]]
"""Rows of `_HISTORY`: position, place, is_status (None for a message), body."""


class LogReader:
    """The tasks of one server, read over one connection."""

    def __init__(self, connection: Connection, server: str) -> None:
        self._connection = connection
        self._server = server

    async def record(self, task_id: str) -> tuple[int, TaskRecord] | None:
        """The number of a task and the task."""
        rows = await self._all(_LOAD, id=task_id)
        if not rows:
            return None
        (_, last, _, submitted, number, folded), *history = rows
        events = [PackedEvent(is_status, body) for _, _, is_status, body, _, _ in history if is_status is not None]
        if len(events) < last:
            return None  # it was deleted meanwhile
        messages = [
            (after, Message.FromString(body)) for after, _, is_status, body, _, _ in history if is_status is None
        ]
        return number, TaskRecord.stored(
            Task.FromString(submitted), events, messages, Task.FromString(folded) if folded is not None else None
        )

    async def news(self, number: int, after: int, messages: int) -> History | None:
        """The events after `after` and the later messages after the first `messages`; None if the task was deleted."""
        rows = await self._all(_NEWS, task=number, after=after, messages=messages)
        return rows[1:] if rows else None

    async def places(self, numbers: Iterable[int]) -> dict[int, tuple[int, int]]:
        """By the number of a task: the `seq` of its last event and the number of its later messages."""
        rows = await self._all(
            "SELECT number, last, messages FROM event_log.task WHERE number = ANY(%(numbers)s)", numbers=[*numbers]
        )
        return {number: (last, messages) for number, last, messages in rows}

    async def request(self, task_id: str) -> StoredRequest | None:
        row = await self._one(_REQUEST, id=task_id)
        if row is None:
            return None
        submitted, first_caller, body, caller, after = row
        if body is None:
            return StoredRequest(Task.FromString(submitted).history[0], Principal.from_json(first_caller), 0)
        return StoredRequest(Message.FromString(body), Principal.from_json(caller), after)

    async def find_message(self, context_id: str, message_id: str) -> FoundMessage | None:
        row = await self._one(_FIND_MESSAGE, context_id=context_id, message_id=message_id)
        return None if row is None else FoundMessage(*row)

    async def state(self, task_id: str) -> TaskState | None:
        row = await self._one("SELECT state FROM event_log.task WHERE id = %(id)s AND server = %(server)s", id=task_id)
        return None if row is None else row[0]

    async def epoch(self, task_id: str) -> int | None:
        row = await self._one("SELECT epoch FROM event_log.task WHERE id = %(id)s AND server = %(server)s", id=task_id)
        return None if row is None else row[0]

    async def ended(self, task_id: str) -> tuple[int, Task] | None:
        """An ended task and the `seq` of its last event, without reading its events."""
        row = await self._one(
            "SELECT last, folded FROM event_log.task WHERE id = %(id)s AND server = %(server)s AND folded IS NOT NULL",
            id=task_id,
        )
        return None if row is None else (row[0], Task.FromString(row[1]))

    async def unfinished(self) -> list[tuple[str, str]]:
        return await self._all(
            "SELECT id, context_id FROM event_log.task"
            " WHERE server = %(server)s AND ended_ns IS NULL AND pauses <= messages ORDER BY number"
        )

    async def waiting(self, context_id: str) -> str | None:
        row = await self._one(
            f"SELECT id FROM event_log.task WHERE server = %(server)s AND context_id = %(context_id)s AND {WAITS}"
            " ORDER BY changed_ns DESC, number DESC LIMIT 1",
            context_id=context_id,
        )
        return None if row is None else row[0]

    async def overdue(self, before_ns: int) -> list[str]:
        rows = await self._all(
            f"SELECT id FROM event_log.task WHERE server = %(server)s AND {WAITS} AND changed_ns < %(before_ns)s"
            " ORDER BY changed_ns",
            before_ns=before_ns,
        )
        return [task_id for (task_id,) in rows]

    async def page(self, query: TaskQuery) -> Page:
        conditions, values = _conditions(query)
        total = await self._one(f"SELECT count(*) FROM event_log.task WHERE {conditions}", **values)
        if query.after is not None:
            conditions += " AND (changed_ns, id) < (%(changed_ns)s, %(id)s)"
            values |= {"changed_ns": query.after[0], "id": query.after[1]}
        rows = await self._all(
            f"{_PAGE} WHERE {conditions} ORDER BY changed_ns DESC, id DESC LIMIT %(limit)s",
            **values,
            limit=query.limit + 1,
        )
        return Page(
            [_row(row) for row in rows[: query.limit]],
            total[0] if total is not None else 0,
            has_more=len(rows) > query.limit,
        )

    async def find_ids(self, beginning: str) -> list[str]:
        """The task with this id; else at most two whose ids begin with it."""
        return await self._beginning("id", beginning)

    async def find_conversations(self, beginning: str) -> list[str]:
        """The conversation with this id; else at most two whose ids begin with it."""
        return await self._beginning("context_id", beginning)

    async def conversations(self, query: ConversationQuery) -> ConversationPage:
        builder = PageBuilder(query)
        after = query.after
        while not builder.is_complete:
            limit = _SEARCHED_AT_ONCE if query.words else query.limit + 1
            after_ns, after_id = after or (None, "")
            found = await self._all(
                _CONVERSATIONS, after_ns=after_ns, after_id=storable(after_id), limit=limit, **_viewer(query.viewer)
            )
            rows = [_conversation(row) for row in found]
            stored: list[Any] = []
            if query.words:
                stored = await self._all(_TEXTS, ids=[row.id for row in rows])
            # In a thread, because parsing many answers would delay the streams of others.
            await asyncio.to_thread(_add_rows, builder, rows, stored)
            if len(rows) < limit:
                break
            after = rows[-1].position
        return builder.page()

    async def access(self, context_id: str) -> ConversationAccess | None:
        row = await self._one(_ACCESS, context_id=storable(context_id))
        return None if row is None else ConversationAccess(row[0], row[1], frozenset(row[2]))

    async def effects(self, task_id: str, prefix: str) -> dict[str, RecordedEffect]:
        rows = await self._all(
            "SELECT call_id, result FROM event_log.effect WHERE starts_with(call_id, %(prefix)s) AND task ="
            " (SELECT number FROM event_log.task WHERE id = %(id)s AND server = %(server)s)",
            id=storable(task_id),
            prefix=storable(prefix),
        )
        return {call_id: RecordedEffect(result) for call_id, result in rows}

    async def name(self, context_id: str) -> str | None:
        row = await self._one(
            "SELECT name FROM event_log.conversation WHERE server = %(server)s AND context_id = %(context_id)s",
            context_id=storable(context_id),
        )
        return None if row is None else row[0]

    async def histories(self, context_id: str) -> list[TaskHistory]:
        """The tasks of a conversation, the oldest first. One that is deleted meanwhile is left out."""
        tasks = await self._all(_HISTORIES, context_id=storable(context_id))
        histories = [await self._history(number, last, sent, (*task,)) for number, last, sent, *task in tasks]
        return [history for history in histories if history is not None]

    async def _history(self, number: int, last: int, sent: int, task: tuple[Any, ...]) -> TaskHistory | None:
        # Later events and messages do not belong to the state that was read.
        events = await self._all(
            "SELECT is_status, body, at_ns FROM event_log.event WHERE task = %(task)s AND seq <= %(last)s ORDER BY seq",
            task=number,
            last=last,
        )
        messages = await self._all(
            "SELECT after, body, caller FROM event_log.message WHERE task = %(task)s AND place < %(sent)s"
            " ORDER BY place",
            task=number,
            sent=sent,
        )
        return None if len(events) < last else TaskHistory.of_rows(task, events, messages)

    async def times(self, task_id: str) -> list[int]:
        """The times of the task's creation and of each event, in nanoseconds since the epoch."""
        return [at for (at,) in await self._all(_TIMES, id=task_id)]

    async def _beginning(self, column: LiteralString, beginning: str) -> list[str]:
        rows = await self._all(
            f"SELECT DISTINCT {column} FROM event_log.task WHERE server = %(server)s AND starts_with({column},"
            f" %(beginning)s) ORDER BY {column} LIMIT 2",
            beginning=beginning,
        )
        found = [value for (value,) in rows]
        return found[:1] if found[:1] == [beginning] else found

    async def _all(self, query: LiteralString, **values: Any) -> list[Any]:
        cursor = self._connection.cursor(binary=True)
        return await (await cursor.execute(query, {"server": self._server, **values})).fetchall()

    async def _one(self, query: LiteralString, **values: Any) -> tuple[Any, ...] | None:
        rows = await self._all(query, **values)
        return rows[0] if rows else None


def _conversation(row: tuple[Any, ...]) -> ConversationRow:
    context_id, tasks, state, created_ns, changed_ns, first, name, owner, via, groups = row
    access = ConversationAccess(owner, via, frozenset(groups))
    return ConversationRow(context_id, tasks, state, created_ns, changed_ns, Task.FromString(first), name, access)


def _add_rows(builder: PageBuilder, rows: Iterable[ConversationRow], stored: Iterable[tuple[str, bytes, Any]]) -> None:
    """Add rows to a page. `stored` are the searched texts: conversation, submitted task, last artifact."""
    tasks: dict[str, list[tuple[bytes, Any]]] = {}
    for context_id, submitted, body in stored:
        tasks.setdefault(context_id, []).append((submitted, body))
    for row in rows:
        texts = (
            TaskTexts(Task.FromString(submitted), body and PackedEvent(is_status=False, body=body))
            for submitted, body in tasks.get(row.id, ())
        )
        builder.add(row, (text for task in texts for text in task))
        if builder.is_complete:
            break


def _viewer(viewer: Principal | None) -> dict[str, Any]:
    """The values of `_VISIBLE`."""
    if viewer is None or sees_everything(viewer):
        return {"sees_everything": True, "owner": "", "bot": None, "member_of": []}
    return {
        "sees_everything": False,
        "owner": storable(viewer.owner),
        "bot": own_name(viewer),
        "member_of": [*map(storable, viewer.groups)],
    }


def _conditions(query: TaskQuery) -> tuple[LiteralString, dict[str, Any]]:
    conditions: LiteralString = _VISIBLE
    values: dict[str, Any] = _viewer(query.viewer)
    if query.context_id is not None:
        conditions += " AND context_id = %(context_id)s"
        values["context_id"] = query.context_id
    if query.state is not None:
        conditions += " AND state = %(state)s"
        values["state"] = query.state
    if query.changed_since_ns is not None:
        conditions += " AND changed_ns >= %(changed_since_ns)s"
        values["changed_since_ns"] = query.changed_since_ns
    return conditions, values


def _row(row: tuple[Any, ...]) -> Row:
    task_id, context_id, state, created_ns, changed_ns, last, submitted, folded = row
    task = None if folded is None else Task.FromString(folded)
    if task is not None and last:
        task.metadata.fields["seq"].number_value = last
    return Row(task_id, context_id, state, created_ns, changed_ns, last, Task.FromString(submitted), task)
