"""The Postgres schema `event_log`: address, tables and format version.

The tasks of all servers are in one table; `server` is the supervisor or an agent. Every write locks the row of its task
and checks the epoch there, so no two processes give out the same `seq`, and none writes after its run was claimed.
"""

from __future__ import annotations

from typing import Final, LiteralString

from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.storage.postgres.schema import Schema
from ai_platform_engineering.utils.postgres_address import PostgresAddress

CLAIMED: Final[LiteralString] = (
    "SELECT 1 FROM event_log.task WHERE id = %(run_task)s AND epoch = %(run_epoch)s FOR SHARE"
)
"""Locks the claim of a run. No row if the run was claimed by another process since."""

WAITS: Final[LiteralString] = "state IN (6, 8)"
"""Condition for tasks that wait for a person (`WAITING_STATES`)."""

_NAMES: Final[LiteralString] = """
CREATE TABLE event_log.conversation (
    server text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    PRIMARY KEY (server, context_id)
);
"""

_ACCESS: Final[LiteralString] = """
CREATE TABLE event_log.access (
    server text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    via text COLLATE "C",
    groups text[] NOT NULL DEFAULT '{}',
    PRIMARY KEY (server, context_id)
);
CREATE INDEX access_by_owner ON event_log.access (server, owner);
"""
# The owners of conversations come from the callers of their first tasks.
_OWNERS: Final[LiteralString] = """
INSERT INTO event_log.access (server, context_id, owner)
SELECT DISTINCT ON (server, context_id) server, context_id,
    (caller::json ->> 'kind') || ':' || coalesce(caller::json ->> 'subject', '')
FROM event_log.task WHERE caller IS NOT NULL ORDER BY server, context_id, number;
"""

# Decides which of two processes stores a message that both get at the same time. Messages that earlier versions have
# stored are not in it. The foreign key deletes the rows with their tasks, also if an earlier version prunes.
_SENT: Final[LiteralString] = """
CREATE TABLE event_log.sent (
    server text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (server, context_id, message_id),
    FOREIGN KEY (task_id, server) REFERENCES event_log.task (id, server) ON DELETE CASCADE
);
CREATE INDEX sent_by_task ON event_log.sent (task_id, server);
"""

# Events have no foreign key: its check would cost more than the insertion. `write_id` names the write, so that a write
# whose commit was not confirmed is not repeated; of several events in one write only the first has it.
_TABLES: Final[LiteralString] = f"""
CREATE TABLE event_log.task (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    server text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    state int NOT NULL,
    created_ns bigint NOT NULL,
    changed_ns bigint NOT NULL,
    ended_ns bigint,
    last int NOT NULL DEFAULT 0,
    messages int NOT NULL DEFAULT 0,
    pauses int NOT NULL DEFAULT 0,
    epoch int NOT NULL DEFAULT 0,
    attempts int NOT NULL DEFAULT 0,
    progress int NOT NULL DEFAULT -1,
    caller text,
    submitted bytea NOT NULL,
    folded bytea,
    UNIQUE (id, server)
) WITH (fillfactor = 70);
CREATE INDEX task_by_change ON event_log.task (server, changed_ns, id);
CREATE INDEX task_by_context ON event_log.task (server, context_id, changed_ns, id);
CREATE INDEX task_by_message ON event_log.task (server, context_id, message_id);
CREATE INDEX task_by_end ON event_log.task (server, ended_ns, number) WHERE ended_ns IS NOT NULL;
CREATE INDEX task_unfinished ON event_log.task (server, number) WHERE ended_ns IS NULL;
CREATE INDEX task_waiting ON event_log.task (server, context_id, changed_ns) WHERE {WAITS};
CREATE TABLE event_log.event (
    task bigint NOT NULL,
    seq int NOT NULL,
    at_ns bigint NOT NULL,
    is_status boolean NOT NULL,
    write_id uuid,
    body bytea NOT NULL,
    PRIMARY KEY (task, seq)
);
CREATE TABLE event_log.message (
    task bigint NOT NULL,
    place int NOT NULL,
    after int NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    caller text,
    write_id uuid NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (task, place)
);
CREATE TABLE event_log.effect (
    task bigint NOT NULL,
    call_id text COLLATE "C" NOT NULL,
    write_id uuid NOT NULL,
    result text,
    PRIMARY KEY (task, call_id)
);
{_NAMES}
{_ACCESS}
{_SENT}
"""


class LogDatabaseError(SettingsError):
    """The database cannot be used. The message names the setting and the way out."""


class LogAddress(PostgresAddress):
    setting = "EVENT_LOG_POSTGRES_DSN"
    purpose = "as the event log"
    error = LogDatabaseError
    tables_gone = "Its tables are gone; restart the server, which creates them"


LOG_SCHEMA: Final = Schema(
    "event_log", format=4, tables=_TABLES, migrations={1: _NAMES, 2: _ACCESS + _OWNERS, 3: _SENT}
)
