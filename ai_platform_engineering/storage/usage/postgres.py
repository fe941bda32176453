"""Usage in Postgres, for servers that share a database: all of them add to the same counts."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Final, LiteralString

from ai_platform_engineering.budgets.usage import FIELDS, Usage, UsageRow, days_before
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.postgres.connections import SchemaConnections
from ai_platform_engineering.storage.postgres.schema import Schema
from ai_platform_engineering.storage.usage.file import KEPT_KEY_DAYS
from ai_platform_engineering.storage.usage.store import UsageBatch, UsageStoreError
from ai_platform_engineering.utils.postgres_address import PostgresAddress

_MAX_CONNECTIONS: Final = 2
_MAX_ACTIVE_SECONDS: Final = 86_400
"""A run in progress counts for at most a day: the row of a task that was deleted meanwhile must not stay."""
_COLUMNS: Final[LiteralString] = ", ".join(FIELDS)
_SUMS: Final[LiteralString] = ", ".join(f"sum({name})::bigint" for name in FIELDS)
_SCHEMA: Final = Schema(
    "usage",
    1,
    f"""
CREATE TABLE usage.usage (
    day text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    model text COLLATE "C" NOT NULL,
    {", ".join(f"{name} bigint NOT NULL DEFAULT 0" for name in FIELDS)},
    PRIMARY KEY (day, scope, model)
);
CREATE TABLE usage.batch (key text COLLATE "C" PRIMARY KEY, day text COLLATE "C" NOT NULL);
CREATE TABLE usage.active (
    scope text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    since bigint NOT NULL,
    PRIMARY KEY (scope, task_id)
);
CREATE INDEX active_task ON usage.active (task_id);
""",
)
_ADD: Final[LiteralString] = (
    f"INSERT INTO usage.usage AS stored (day, scope, model, {_COLUMNS}) "  # noqa: S608
    f"VALUES (%s, %s, %s, {', '.join(['%s'] * len(FIELDS))}) ON CONFLICT (day, scope, model) DO UPDATE SET "
    + ", ".join(f"{name} = stored.{name} + excluded.{name}" for name in FIELDS)
)


class UsageAddress(PostgresAddress):
    setting = "EVENT_LOG_POSTGRES_DSN"
    purpose = "to count usage"
    error = UsageStoreError
    tables_gone = "Its tables are gone; restart the server, which creates them"


class PostgresUsage:
    """Connects and creates its tables on first use."""

    is_shared = True

    def __init__(self, address: UsageAddress) -> None:
        self._address = address
        self._connections = SchemaConnections(address, _SCHEMA, _MAX_CONNECTIONS)

    def add(self, batches: Sequence[UsageBatch]) -> None:
        with self._connections.connection() as connection, connection.transaction():
            rows: list[UsageRow] = []
            for batch in batches:
                day = max((row.day for row in batch.rows), default="")
                found = connection.execute(
                    "INSERT INTO usage.batch (key, day) VALUES (%s, %s) ON CONFLICT DO NOTHING", [batch.key, day]
                )
                if found.rowcount:
                    rows += batch.rows
                    connection.execute("DELETE FROM usage.batch WHERE day < %s", [days_before(day, KEPT_KEY_DAYS)])
            # In one order, so that two processes do not wait for each other's rows.
            rows.sort(key=lambda row: (row.day, row.scope, row.model))
            with connection.cursor() as cursor:
                cursor.executemany(
                    _ADD,
                    [(row.day, row.scope, row.model, *(getattr(row.usage, name) for name in FIELDS)) for row in rows],
                )

    def totals(self, day: str, scopes: Collection[str]) -> Mapping[str, Usage]:
        query: LiteralString = (
            f"SELECT scope, {_SUMS} FROM usage.usage WHERE day = %s AND scope = ANY(%s) GROUP BY scope"  # noqa: S608
        )
        with self._connections.connection() as connection:
            found = connection.execute(query, [day, list(scopes)]).fetchall()
        return {scope: Usage(*counts) for scope, *counts in found}

    def rows(self, since: str, scopes: Collection[str] | None = None) -> list[UsageRow]:
        query: LiteralString = (
            f"SELECT day, scope, model, {_COLUMNS} FROM usage.usage WHERE day >= %s "  # noqa: S608
            "AND (%s::text[] IS NULL OR scope = ANY(%s)) ORDER BY day, scope, model"
        )
        wanted = None if scopes is None else list(scopes)
        with self._connections.connection() as connection:
            found = connection.execute(query, [since, wanted, wanted]).fetchall()
        return [UsageRow(day, scope, model, Usage(*counts)) for day, scope, model, *counts in found]

    def activate(self, task_id: str, limits: Mapping[str, int | None]) -> Mapping[str, int]:
        now = int(time.time())
        with self._connections.connection() as connection, connection.transaction():
            for scope in sorted(limits):  # in one order, so that two transactions do not wait for each other
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"usage/{scope}"])
            connection.execute("DELETE FROM usage.active WHERE since < %s", [now - _MAX_ACTIVE_SECONDS])
            others = dict(
                connection.execute(
                    "SELECT scope, count(*) FROM usage.active WHERE scope = ANY(%s) AND task_id <> %s GROUP BY scope",
                    [list(limits), task_id],
                ).fetchall()
            )
            full = {scope: others.get(scope, 0) for scope, limit in limits.items() if limit}
            full = {scope: count for scope, count in full.items() if count >= (limits[scope] or 0)}
            if not full:
                for scope in limits:
                    connection.execute(
                        "INSERT INTO usage.active (scope, task_id, since) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                        [scope, task_id, now],
                    )
            return full

    def deactivate(self, task_id: str) -> None:
        with self._connections.connection() as connection:
            connection.execute("DELETE FROM usage.active WHERE task_id = %s", [task_id])

    def check_up(self, name: str) -> StoreCheckup:
        return _SCHEMA.check_up(name, self._address, "usage", "rows")

    def close(self) -> None:
        self._connections.close()
