"""The writes of the log in Postgres. Each is one statement that locks the row of its task and checks the epoch there.

Appends of several tasks are one statement together. A write has an id (`write_id`): if its connection breaks before the
commit is confirmed, the repeated write finds out whether it was committed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, LiteralString, TypeVar
from uuid import UUID, uuid4

from a2a.types.a2a_pb2 import Message, Task, TaskStatusUpdateEvent

from ai_platform_engineering.identity.access import own_name, sees_everything
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.storage.event_log.event_log import Claim, RecordedEffect
from ai_platform_engineering.storage.event_log.postgres.schema import WAITS
from ai_platform_engineering.storage.event_log.task_fold import ends_task, suspends_task
from ai_platform_engineering.storage.postgres.connections import storable
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES
from ai_platform_engineering.utils.a2a_common.wire import WireEvent

T = TypeVar("T")

Row = tuple[Any, ...]

_NEWS: Final[LiteralString] = "concat_ws(':', number, last, messages)"

APPEND: Final[LiteralString] = f"""
WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset(%(appends)s::json) AS given (
        place int, id text, epoch int, only_waiting bool, first int, count int, pauses int, state int,
        at_ns bigint, changed_ns bigint, ended_ns bigint, write_id uuid
    )
), updated AS (
    UPDATE event_log.task AS task SET
        last = task.last + given.count,
        pauses = task.pauses + given.pauses,
        state = coalesce(given.state, task.state),
        changed_ns = coalesce(given.changed_ns, task.changed_ns),
        ended_ns = given.ended_ns
    FROM given
    WHERE task.id = given.id AND task.server = %(server)s AND task.ended_ns IS NULL
        AND (given.epoch IS NULL OR given.epoch = task.epoch)
        AND (NOT given.only_waiting OR (task.{WAITS} AND task.pauses > task.messages))
    RETURNING given.place, given.first, given.at_ns, given.write_id,
        task.number, task.last, task.messages, task.last - given.count AS before
), inserted AS (
    INSERT INTO event_log.event (task, seq, at_ns, is_status, write_id, body)
    SELECT number, before + item - first, at_ns, substr(%(kinds)s::text, item::int, 1) = 's',
        CASE item - first WHEN 1 THEN write_id END, body
    FROM unnest(%(bodies)b::bytea[]) WITH ORDINALITY AS event (body, item)
    JOIN updated ON item > first AND item <= first + last - before
)
SELECT place, before, messages, notified
FROM updated, (SELECT pg_notify(%(channel)s, string_agg({_NEWS}, ' ')) AS notified FROM updated HAVING count(*) > 0)
"""
APPENDED: Final[LiteralString] = """
SELECT event.seq - 1, task.messages
FROM event_log.task AS task JOIN event_log.event AS event ON event.task = task.number
WHERE task.id = %(id)s AND task.server = %(server)s AND event.write_id = %(write_id)s
"""
WHY_NOT: Final[LiteralString] = "SELECT ended_ns IS NOT NULL, epoch FROM event_log.task WHERE id = %s AND server = %s"

_CREATE: Final[LiteralString] = """
WITH access AS (
    INSERT INTO event_log.access AS access (server, context_id, owner, via, groups)
    SELECT %(server)s, %(context_id)s, %(owner)s, %(via)s, %(groups)s::text[] WHERE %(owner)s <> ''
    ON CONFLICT (server, context_id) DO UPDATE SET owner = access.owner
    RETURNING owner, via, groups
), allowed AS (
    SELECT WHERE %(sees_everything)s OR EXISTS (
        SELECT FROM access WHERE owner = %(owner)s OR via = %(bot)s OR groups && %(member_of)s::text[]
    )
), sent AS (
    INSERT INTO event_log.sent (server, context_id, message_id, task_id)
    SELECT %(server)s, %(context_id)s, %(message_id)s, %(id)s FROM allowed WHERE %(message_id)s <> ''
    ON CONFLICT DO NOTHING RETURNING task_id
), inserted AS (
    INSERT INTO event_log.task
        (server, id, context_id, message_id, state, created_ns, changed_ns, ended_ns, caller, submitted)
    SELECT %(server)s, %(id)s, %(context_id)s, %(message_id)s, %(state)s, %(created_ns)s, %(changed_ns)s,
        %(ended_ns)s, %(caller)s, %(submitted)b
    FROM allowed WHERE %(message_id)s = '' OR EXISTS (SELECT FROM sent)
    ON CONFLICT DO NOTHING RETURNING number
)
SELECT number FROM inserted UNION ALL
SELECT number FROM event_log.task WHERE id = %(id)s AND server = %(server)s AND created_ns = %(created_ns)s
"""
_ADD_MESSAGE: Final[LiteralString] = f"""
WITH known AS (
    SELECT message.place, message.after, task.number FROM event_log.task AS task
    JOIN event_log.message AS message ON message.task = task.number
    WHERE task.id = %(id)s AND task.server = %(server)s AND message.write_id = %(write_id)s
), open_task AS (
    SELECT context_id FROM event_log.task
    WHERE id = %(id)s AND server = %(server)s AND ended_ns IS NULL AND NOT EXISTS (SELECT FROM known)
    FOR NO KEY UPDATE
), sent AS (
    INSERT INTO event_log.sent (server, context_id, message_id, task_id)
    SELECT %(server)s, context_id, %(message_id)s, %(id)s FROM open_task WHERE %(message_id)s <> ''
    ON CONFLICT DO NOTHING RETURNING task_id
), updated AS (
    UPDATE event_log.task SET messages = messages + 1
    WHERE id = %(id)s AND server = %(server)s AND EXISTS (SELECT FROM open_task)
        AND (%(message_id)s = '' OR EXISTS (SELECT FROM sent))
    RETURNING messages - 1 AS place, last AS after, number, last, messages
), inserted AS (
    INSERT INTO event_log.message (task, place, after, message_id, caller, write_id, body)
    SELECT number, place, after, %(message_id)s, %(caller)s, %(write_id)s, %(body)b FROM updated
)
SELECT place, after, pg_notify(%(channel)s, {_NEWS}) FROM updated UNION ALL SELECT place, after, NULL FROM known
"""
SHARE: Final[LiteralString] = """
UPDATE event_log.access SET groups = %(groups)s::text[] WHERE server = %(server)s AND context_id = %(context_id)s
"""
# The lock keeps the task, and with it the conversation, from being deleted meanwhile.
RENAME: Final[LiteralString] = """
WITH task AS (
    SELECT FROM event_log.task WHERE server = %(server)s AND context_id = %(context_id)s LIMIT 1 FOR KEY SHARE
), renamed AS (
    INSERT INTO event_log.conversation (server, context_id, name)
    SELECT %(server)s, %(context_id)s, %(name)s FROM task WHERE %(name)s::text IS NOT NULL
    ON CONFLICT (server, context_id) DO UPDATE SET name = excluded.name
), removed AS (
    DELETE FROM event_log.conversation
    WHERE server = %(server)s AND context_id = %(context_id)s AND %(name)s::text IS NULL
)
SELECT FROM task
"""
_CLAIM: Final[LiteralString] = """
UPDATE event_log.task AS task SET epoch = epoch + 1, progress = %(progress)s,
    attempts = CASE WHEN %(progress)s > progress THEN 1 ELSE attempts + 1 END
WHERE id = %(id)s AND server = %(server)s AND ended_ns IS NULL {condition} RETURNING epoch, attempts
"""
_IS_NEW: Final[LiteralString] = f"""
AND last = 0 AND messages = 0 AND NOT EXISTS (
    SELECT FROM event_log.task AS other
    WHERE other.server = task.server AND other.context_id = task.context_id AND other.{WAITS}
)
"""
_CLAIMED: Final[LiteralString] = """
claimed AS (
    SELECT number FROM event_log.task
    WHERE id = %(id)s AND server = %(server)s AND (%(epoch)s::int IS NULL OR epoch = %(epoch)s::int) FOR SHARE
)
"""
_BEGIN_EFFECT: Final[LiteralString] = f"""
WITH {_CLAIMED}, recorded AS (
    SELECT result, write_id FROM event_log.effect
    WHERE task = (SELECT number FROM claimed) AND call_id = %(call_id)s
), inserted AS (
    INSERT INTO event_log.effect (task, call_id, write_id, result)
    SELECT number, %(call_id)s, %(write_id)s, %(result)s FROM claimed ON CONFLICT DO NOTHING RETURNING write_id
)
SELECT EXISTS (SELECT FROM inserted) OR EXISTS (SELECT FROM recorded WHERE write_id = %(write_id)s),
    (SELECT result FROM recorded)
FROM claimed
"""
_FINISH_EFFECT: Final[LiteralString] = f"""
WITH {_CLAIMED}, updated AS (
    UPDATE event_log.effect SET result = %(result)s FROM claimed WHERE task = claimed.number AND call_id = %(call_id)s
)
SELECT FROM claimed
"""
_STORE_FOLDED: Final[LiteralString] = """
UPDATE event_log.task SET folded = %(folded)b WHERE number = %(number)s AND ended_ns IS NOT NULL RETURNING number
"""


@dataclass(frozen=True, slots=True)
class Write(Generic[T]):
    """A statement that returns one row; no row if the task is unknown, has ended or was claimed by another process.

    `is_urgent` writes are not repeated for longer than a reconnection takes: a person waits for the answer.
    """

    task_id: str
    statement: LiteralString
    parameters: Mapping[str, Any]
    result: Callable[[Row], T]
    epoch: int | None = None
    needs_open_task: bool = True
    is_urgent: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    """Events for one task, serialized without their `seq`, which the statement gives out."""

    task_id: str
    events: Sequence[WireEvent]
    epoch: int | None = None
    only_waiting: bool = False
    """Append nothing unless the task waits for a person."""
    at_ns: int = field(default_factory=time.time_ns)
    write_id: UUID = field(default_factory=uuid4)


def append_parameters(server: str, channel: str, appends: Sequence[Append]) -> dict[str, Any]:
    """The parameters of `APPEND`. All but the bodies are one JSON text: the driver takes longer for many arrays."""
    given: list[dict[str, Any]] = []
    kinds: list[str] = []
    bodies: list[bytes] = []
    for place, append in enumerate(appends):
        state = changed_ns = ended_ns = None
        pauses = 0
        first = len(bodies)
        for event in append.events:
            if isinstance(event, TaskStatusUpdateEvent):
                state, changed_ns = event.status.state, event.status.timestamp.ToNanoseconds()
                ended_ns = append.at_ns if ends_task(event) else None
                pauses += suspends_task(event)
                kinds.append("s")
            else:
                kinds.append("a")
            bodies.append(event.SerializeToString())
        given.append(
            {
                "place": place,
                "id": storable(append.task_id),
                "epoch": append.epoch,
                "only_waiting": append.only_waiting,
                "first": first,
                "count": len(append.events),
                "pauses": pauses,
                "state": state,
                "at_ns": append.at_ns,
                "changed_ns": changed_ns,
                "ended_ns": ended_ns,
                "write_id": append.write_id.hex,
            }
        )
    return {
        "server": server,
        "channel": channel,
        "appends": json.dumps(given),
        "kinds": "".join(kinds),
        "bodies": bodies,
    }


def create(server: str, task: Task, caller: Principal, groups: frozenset[str]) -> Write[int]:
    now = time.time_ns()
    return Write(
        task.id,
        _CREATE,
        {
            "server": server,
            "id": task.id,
            "context_id": task.context_id,
            "message_id": task.history[0].message_id if task.history else "",
            "state": task.status.state,
            "created_ns": now,
            "changed_ns": task.status.timestamp.ToNanoseconds(),
            "ended_ns": now if task.status.state in TERMINAL_STATES else None,
            "caller": _stored(caller),
            "owner": storable(caller.owner),
            "via": caller.via and storable(caller.via),
            "groups": [*map(storable, groups)],
            "member_of": [*map(storable, caller.groups)],
            "bot": own_name(caller),
            "sees_everything": sees_everything(caller),
            "submitted": task.SerializeToString(),
        },
        lambda row: int(row[0]),
        needs_open_task=False,
        is_urgent=True,
    )


def add_message(server: str, channel: str, task_id: str, message: Message, caller: Principal) -> Write[tuple[int, int]]:
    """Returns the place of the message and the `seq` of the last event before it."""
    return Write(
        task_id,
        _ADD_MESSAGE,
        {
            "server": server,
            "channel": channel,
            "id": task_id,
            "message_id": message.message_id,
            "caller": _stored(caller),
            "write_id": uuid4(),
            "body": message.SerializeToString(),
        },
        lambda row: (row[0], row[1]),
        is_urgent=True,
    )


def claim(server: str, task_id: str, progress: int) -> Write[Claim]:
    parameters = {"server": server, "id": task_id, "progress": progress}
    return Write(task_id, _CLAIM.format(condition=""), parameters, lambda row: Claim(*row))


def claim_new(server: str, task_id: str) -> Write[Claim]:
    """Claims only a task without events, and only if no task of its conversation waits for a person."""
    parameters = {"server": server, "id": task_id, "progress": 0}
    return Write(task_id, _CLAIM.format(condition=_IS_NEW), parameters, lambda row: Claim(*row))


def begin_effect(
    server: str, task_id: str, call_id: str, epoch: int | None, result: str | None
) -> Write[RecordedEffect | None]:
    parameters = {"server": server, "id": task_id, "call_id": call_id, "epoch": epoch, "result": result}
    return Write(
        task_id,
        _BEGIN_EFFECT,
        parameters | {"write_id": uuid4()},
        lambda row: None if row[0] else RecordedEffect(row[1]),
        epoch,
        needs_open_task=False,
    )


def finish_effect(server: str, task_id: str, call_id: str, result: str, epoch: int | None) -> Write[None]:
    parameters = {"server": server, "id": task_id, "call_id": call_id, "result": result, "epoch": epoch}
    return Write(task_id, _FINISH_EFFECT, parameters, lambda _: None, epoch, needs_open_task=False)


def store_folded(task_id: str, number: int, task: Task) -> Write[None]:
    """Store an ended task as a whole, so that reading it does not need its events."""
    parameters = {"number": number, "folded": task.SerializeToString()}
    return Write(task_id, _STORE_FOLDED, parameters, lambda _: None, needs_open_task=False, is_urgent=True)


def _stored(caller: Principal) -> str | None:
    return None if caller == ANONYMOUS else caller.to_json()
