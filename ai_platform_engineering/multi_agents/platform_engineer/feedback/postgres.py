"""Feedback in Postgres, for supervisors on several machines."""

from __future__ import annotations

import time
from dataclasses import astuple
from typing import Final, Literal, LiteralString

from ai_platform_engineering.multi_agents.platform_engineer.feedback.file import (
    NS_PER_DAY,
    STATES,
    FeedbackStoreError,
)
from ai_platform_engineering.multi_agents.platform_engineer.feedback.record import Feedback
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.postgres.advisory_locks import AdvisoryLocks
from ai_platform_engineering.storage.postgres.connections import SchemaConnections
from ai_platform_engineering.storage.postgres.schema import Schema
from ai_platform_engineering.utils.postgres_address import PostgresAddress

_MAX_CONNECTIONS: Final = 4
_SCHEMA: Final = Schema(
    "feedback",
    1,
    """
CREATE TABLE feedback.feedback (
    id text COLLATE "C" PRIMARY KEY,
    trace_id text NOT NULL,
    rating text NOT NULL,
    surface text NOT NULL,
    at_ns bigint NOT NULL,
    task_id text NOT NULL,
    message_id text NOT NULL,
    reason text NOT NULL,
    user_id text NOT NULL,
    user_name text NOT NULL,
    forwarded smallint NOT NULL DEFAULT 0
);
CREATE INDEX feedback_by_time ON feedback.feedback (at_ns);
CREATE INDEX feedback_waiting ON feedback.feedback (at_ns) WHERE forwarded = 0;
""",
)
# The fields of `Feedback` in their order.
_COLUMNS: Final[LiteralString] = "trace_id, rating, surface, at_ns, task_id, message_id, reason, user_id, user_name"
_STORE: Final[LiteralString] = f"""
WITH known AS (SELECT FROM feedback.feedback WHERE id = %s)
INSERT INTO feedback.feedback (id, {_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET
    trace_id = excluded.trace_id, rating = excluded.rating, surface = excluded.surface, at_ns = excluded.at_ns,
    task_id = excluded.task_id, message_id = excluded.message_id, reason = excluded.reason,
    user_id = excluded.user_id, user_name = excluded.user_name, forwarded = 0
RETURNING NOT EXISTS (SELECT FROM known)
"""  # noqa: S608 - the columns are constants
_SELECT: Final[LiteralString] = f"SELECT {_COLUMNS} FROM feedback.feedback"  # noqa: S608


class FeedbackAddress(PostgresAddress):
    setting = "EVENT_LOG_POSTGRES_DSN"
    purpose = "to store feedback"
    error = FeedbackStoreError
    tables_gone = "Its tables are gone; restart the server, which creates them"


class PostgresFeedback:
    """One process at a time forwards: it has an advisory lock, which is free when the process is gone."""

    is_shared = True

    def __init__(self, address: FeedbackAddress, max_age_days: float = 0) -> None:
        self._address = address
        self._max_age_ns = int(max_age_days * NS_PER_DAY)
        self._connections = SchemaConnections(address, _SCHEMA, _MAX_CONNECTIONS)
        self._locks = AdvisoryLocks(address, "feedback")

    def store(self, feedback: Feedback) -> bool:
        with self._connections.connection() as connection:
            row = connection.execute(_STORE, [feedback.id, feedback.id, *astuple(feedback)]).fetchone()
            if self._max_age_ns:
                oldest = time.time_ns() - self._max_age_ns
                connection.execute("DELETE FROM feedback.feedback WHERE at_ns < %s", [oldest])
            return bool(row and row[0])

    def newest(self, limit: int, user: str | None = None) -> list[Feedback]:
        condition: LiteralString = "WHERE %s::text IS NULL OR user_id = %s"
        return self._read(f"{_SELECT} {condition} ORDER BY at_ns DESC LIMIT %s", user, user, limit)

    def begin_forwarding(self) -> bool:
        return self._locks.acquire()

    def end_forwarding(self) -> None:
        self._locks.release()

    def pending(self, limit: int) -> list[Feedback]:
        return self._read(f"{_SELECT} WHERE forwarded = 0 ORDER BY at_ns LIMIT %s", limit)

    def mark_done(self, feedback: Feedback, state: Literal["forwarded", "refused"]) -> None:
        with self._connections.connection() as connection:
            connection.execute(
                "UPDATE feedback.feedback SET forwarded = %s WHERE id = %s AND at_ns = %s",
                [STATES[state], feedback.id, feedback.at_ns],
            )

    def check_up(self, name: str) -> StoreCheckup:
        return _SCHEMA.check_up(name, self._address, "feedback", "entries")

    def close(self) -> None:
        self._locks.close()
        self._connections.close()

    def _read(self, query: LiteralString, *values: str | int | None) -> list[Feedback]:
        with self._connections.connection() as connection:
            return [Feedback(*row) for row in connection.execute(query, values)]
