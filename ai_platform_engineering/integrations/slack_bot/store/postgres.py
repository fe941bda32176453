"""The store in Postgres, for bots on several machines: one is active, the others wait to take over.

Every statement goes through the connection that has the lock of the active bot. A bot without the lock has no such
connection, so it cannot write.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from threading import RLock
from typing import Any, Final, LiteralString, TypeVar
from uuid import uuid4

import psycopg

from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store.file import BotStoreError
from ai_platform_engineering.integrations.slack_bot.store.rows import READ, WRITTEN, row_of, run_from
from ai_platform_engineering.integrations.slack_bot.store.values import EVENT_SECONDS, StoredRun, ThreadSession
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.postgres.advisory_locks import lockable, try_lock
from ai_platform_engineering.storage.postgres.connections import store_any_text
from ai_platform_engineering.storage.postgres.schema import PgConnection, Schema
from ai_platform_engineering.utils.postgres_address import PostgresAddress

MAX_UNCONFIRMED_SECONDS: Final = 20.0
"""How long a bot goes on without a confirmed lock. The server frees the lock of a lost machine after 30 seconds."""

# A statement on a broken connection blocks the event loop, so it fails early.
_CONNECTION: Final = {"connect_timeout": 3, "tcp_user_timeout": 5000}
_LOCK: Final = "slack-bot"
_RELEASE_SECONDS: Final = 1.0
_PRUNE_BATCH: Final = 500
_SCHEMA: Final = Schema(
    "slack",
    1,
    """
CREATE TABLE slack.heard (event text COLLATE "C" PRIMARY KEY, at double precision NOT NULL, attempt text NOT NULL);
CREATE INDEX heard_by_age ON slack.heard (at);
CREATE TABLE slack.session (
    place text COLLATE "C" PRIMARY KEY,
    context_id text NOT NULL,
    last_used double precision NOT NULL
);
CREATE INDEX session_by_age ON slack.session (last_used);
CREATE TABLE slack.run (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    place text COLLATE "C" NOT NULL,
    begun double precision NOT NULL,
    done bool NOT NULL,
    context_id text NOT NULL,
    task_id text NOT NULL,
    trace_id text NOT NULL,
    seen bigint NOT NULL,
    incoming text NOT NULL,
    state bytea NOT NULL
);
CREATE INDEX run_by_place ON slack.run (place, begun);
CREATE INDEX run_by_task ON slack.run (task_id, begun);
CREATE INDEX run_by_age ON slack.run (done, begun);
""",
)
_FIRST_TIME: Final[LiteralString] = "INSERT INTO slack.heard VALUES (%s, %s, %s) ON CONFLICT DO NOTHING"
_PUT_SESSION: Final[LiteralString] = """
INSERT INTO slack.session VALUES (%s, %s, %s)
ON CONFLICT (place) DO UPDATE SET context_id = excluded.context_id, last_used = excluded.last_used
"""
_PUT_RUN: Final[LiteralString] = f"""
INSERT INTO slack.run ({WRITTEN}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (id) DO UPDATE SET
    place = excluded.place, begun = excluded.begun, done = excluded.done, context_id = excluded.context_id,
    task_id = excluded.task_id, trace_id = excluded.trace_id, seen = excluded.seen, incoming = excluded.incoming,
    state = excluded.state
"""  # noqa: S608 - the columns are constants
_RUNS: Final[LiteralString] = f"SELECT {READ} FROM slack.run"  # noqa: S608
_NEWEST: Final[LiteralString] = "ORDER BY begun DESC, number DESC LIMIT 1"
_PRUNE_RUNS: Final[LiteralString] = """
DELETE FROM slack.run WHERE number IN (SELECT number FROM slack.run WHERE done AND begun < %s LIMIT %s)
"""
_PRUNE_SESSIONS: Final[LiteralString] = """
DELETE FROM slack.session WHERE place IN (
    SELECT place FROM slack.session
    WHERE last_used < %s AND NOT EXISTS (SELECT FROM slack.run WHERE run.place = session.place AND NOT done)
    LIMIT %s
)
"""
_PRUNE_EVENTS: Final[LiteralString] = """
DELETE FROM slack.heard WHERE event IN (SELECT event FROM slack.heard WHERE at < %s LIMIT %s)
"""

_Result = TypeVar("_Result")


class BotStoreAddress(PostgresAddress):
    setting = "SLACK_SESSIONS_POSTGRES_DSN"
    purpose = "by the Slack bot"
    error = BotStoreError
    tables_gone = "Its tables are gone; restart the bot, which creates them"


def check_up(name: str, url: str) -> StoreCheckup:
    """The row of `platform-engineer doctor`."""
    return _SCHEMA.check_up(name, BotStoreAddress(url), "session", "threads")


class PostgresBotStore:
    """`on_lost` is called when another bot is active, or may be. The bot's own state is in the database, so the
    process should end at once."""

    def __init__(self, address: BotStoreAddress, on_lost: Callable[[BotStoreError], None]) -> None:
        self.place = str(address)
        self._address = address
        self._on_lost = on_lost
        # The bot's event loop and the thread that checks the lock use the connection.
        self._using = RLock()
        self._connection: PgConnection | None = None
        self._confirmed_at = time.monotonic()
        _SCHEMA.prepare(address)

    def activate(self) -> bool:
        with self._using:
            self._connection = self._locked_connection()
            self._confirmed_at = time.monotonic()
            return self._connection is not None

    def check(self) -> None:
        try:
            self._run(lambda connection: connection.execute("SELECT 1"))
        except BotStoreError as error:
            if time.monotonic() - self._confirmed_at > MAX_UNCONFIRMED_SECONDS:
                self._on_lost(error)
            raise

    def first_time(self, event_id: str, now: float) -> bool:
        # If the connection breaks after the commit, the repeated statement finds its own row.
        attempt = uuid4().hex

        def insert(connection: PgConnection) -> bool:
            if connection.execute(_FIRST_TIME, [event_id, now, attempt]).rowcount:
                return True
            row = connection.execute("SELECT attempt FROM slack.heard WHERE event = %s", [event_id]).fetchone()
            return row is not None and row[0] == attempt

        return self._run(insert)

    def session(self, place: ThreadPlace) -> ThreadSession | None:
        rows = self._rows("SELECT context_id, last_used FROM slack.session WHERE place = %s", place.key)
        return ThreadSession(place, *rows[0]) if rows else None

    def put_session(self, session: ThreadSession) -> None:
        values = [session.place.key, session.context_id, session.last_used]
        self._run(lambda connection: connection.execute(_PUT_SESSION, values))

    def put_run(self, run: StoredRun) -> None:
        self._run(lambda connection: connection.execute(_PUT_RUN, row_of(run)))

    def run(self, run_id: str) -> StoredRun | None:
        return next(iter(self._runs(f"{_RUNS} WHERE id = %s", run_id)), None)

    def run_of_task(self, task_id: str) -> StoredRun | None:
        found = self._runs(f"{_RUNS} WHERE task_id = %s {_NEWEST}", task_id) if task_id else []
        return next(iter(found), None)

    def open_runs(self, place: ThreadPlace | None = None) -> list[StoredRun]:
        if place is None:
            return self._runs(f"{_RUNS} WHERE NOT done ORDER BY begun, number")
        return self._runs(f"{_RUNS} WHERE place = %s AND NOT done ORDER BY begun, number", place.key)

    def latest_run(self, place: ThreadPlace) -> StoredRun | None:
        return next(iter(self._runs(f"{_RUNS} WHERE place = %s {_NEWEST}", place.key)), None)

    def prune(self, now: float, max_age: float) -> bool:
        deleted = [
            self._prune(_PRUNE_RUNS, now - max_age),
            self._prune(_PRUNE_SESSIONS, now - max_age),
            self._prune(_PRUNE_EVENTS, now - EVENT_SECONDS),
        ]
        return _PRUNE_BATCH in deleted

    def close(self) -> None:
        with self._using:
            if self._connection is not None:
                with suppress(psycopg.Error):
                    self._connection.close()

    def _runs(self, query: LiteralString, *values: str) -> list[StoredRun]:
        rows = self._rows(query, *values)
        try:
            return [run_from(row) for row in rows]
        except (ValueError, TypeError, KeyError) as error:
            raise self._address.unusable_because(
                "it holds a run that this version of the Slack bot cannot read",
                f"Update the bot, or name another database in {self._address.setting}",
            ) from error

    def _rows(self, query: LiteralString, *values: str) -> list[tuple[Any, ...]]:
        return self._run(lambda connection: connection.execute(query, values).fetchall())

    def _prune(self, statement: LiteralString, oldest: float) -> int:
        return self._run(lambda connection: connection.execute(statement, [oldest, _PRUNE_BATCH]).rowcount)

    def _run(self, work: Callable[[PgConnection], _Result]) -> _Result:
        """Execute statements that may be repeated: once more on a new connection, if the server was restarted."""
        with self._using:
            if self._connection is None:
                raise BotStoreError(f"{self.place} is used by another Slack bot. Wait until that one has ended.")
            try:
                try:
                    result = work(self._connection)
                except psycopg.Error:
                    if not self._connection.closed:
                        raise
                    result = work(self._reconnected())
            except psycopg.Error as error:
                raise self._address.unusable(error) from error
            self._confirmed_at = time.monotonic()
            return result

    def _reconnected(self) -> PgConnection:
        self.close()
        connection = self._locked_connection()
        deadline = time.monotonic() + _RELEASE_SECONDS
        while connection is None and time.monotonic() < deadline:
            # The server may still be ending the session of the old connection.
            time.sleep(_RELEASE_SECONDS / 20)
            connection = self._locked_connection()
        if connection is None:
            lost = BotStoreError(f"Another Slack bot that uses {self.place} has taken over, so this one stops.")
            self._connection = None
            self._on_lost(lost)
            raise lost
        self._connection = connection
        return connection

    def _locked_connection(self) -> PgConnection | None:
        connection = lockable(self._address, **_CONNECTION)
        try:
            if try_lock(connection, _LOCK):
                store_any_text(connection)
                return connection
        except psycopg.Error as error:
            connection.close()
            raise self._address.unusable(error) from error
        connection.close()
        return None
