"""The audit record in Postgres, for servers that share a database. The row of the head serialises their entries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, LiteralString

from ai_platform_engineering.audit.log import AuditUnavailableError
from ai_platform_engineering.audit.record import AuditFact, Entry, EntryError, Head, Seal, chained, cut_fact, prunable
from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.storage.postgres.connections import SchemaConnections
from ai_platform_engineering.storage.postgres.schema import PgConnection, Schema
from ai_platform_engineering.utils.postgres_address import PostgresAddress

_MAX_CONNECTIONS: Final = 2
_PAGE: Final = 1000
# `agent` is the server of the record: the supervisor and its agents may share a database.
_SCHEMA: Final = Schema(
    "audit",
    1,
    """
CREATE TABLE audit.entry (
    agent text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    line text NOT NULL,
    PRIMARY KEY (agent, seq)
);
CREATE TABLE audit.head (agent text COLLATE "C" PRIMARY KEY, line text NOT NULL);
CREATE FUNCTION audit.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'entries of the audit record are not changed'; END $$;
CREATE TRIGGER entry_is_final BEFORE UPDATE ON audit.entry EXECUTE FUNCTION audit.refuse_change();
""",
)
_INSERT: Final[LiteralString] = "INSERT INTO audit.entry (agent, seq, line) VALUES (%s, %s, %s)"
_LAST: Final[LiteralString] = "SELECT line FROM audit.entry WHERE agent = %s ORDER BY seq DESC LIMIT 1"
_PUT_HEAD: Final[LiteralString] = """
INSERT INTO audit.head (agent, line) VALUES (%s, %s) ON CONFLICT (agent) DO UPDATE SET line = excluded.line
"""
_HEAD: Final[LiteralString] = "SELECT line FROM audit.head WHERE agent = %s"


class AuditAddress(PostgresAddress):
    setting = "EVENT_LOG_POSTGRES_DSN"
    purpose = "for the audit record"
    error = AuditUnavailableError
    tables_gone = "Its tables are gone; restart the server, which creates them"


class PostgresAudit:
    """Connects and creates its tables on first use. `retention_ns` is the age at which entries are deleted."""

    def __init__(self, address: AuditAddress, agent: str, seal: Seal, retention_ns: int = 0) -> None:
        self._address = address
        self._agent = agent
        self._seal = seal
        self._retention_ns = retention_ns
        self._connections = SchemaConnections(address, _SCHEMA, _MAX_CONNECTIONS)

    def append(self, facts: Sequence[AuditFact]) -> Head:
        with self._writing() as (connection, stored_head):
            last = self._last(connection)
            cut = cut_fact(last, stored_head, self._seal)
            return self._insert(connection, last, [cut, *facts] if cut else facts)

    def prune(self) -> None:
        if not self._retention_ns:
            return
        with self._writing() as (connection, _):
            pruned = prunable((Entry.read(line) for line in self._lines(connection)), self._retention_ns)
            if pruned is None:
                return
            fact = AuditFact("entries_pruned", count=pruned.seq, anchor=pruned.hash)
            self._insert(connection, self._last(connection), [fact])
            connection.execute("DELETE FROM audit.entry WHERE agent = %s AND seq <= %s", [self._agent, pruned.seq])

    def head(self) -> str | None:
        with self._connections.connection() as connection:
            row = connection.execute(_HEAD, [self._agent]).fetchone()
            return str(row[0]) if row else None

    @contextmanager
    def open_lines(self, *, newest_first: bool = False) -> Iterator[Iterator[str]]:
        """The entries of the record, read in pages."""
        with self._connections.connection() as connection:
            yield self._lines(connection, newest_first=newest_first)

    def check_up(self, name: str) -> StoreCheckup:
        return _SCHEMA.check_up(name, self._address, "entry", "entries")

    def close(self) -> None:
        self._connections.close()

    @contextmanager
    def _writing(self) -> Iterator[tuple[PgConnection, str | None]]:
        """A transaction that no other one of this record runs beside, and the stored head."""
        try:
            with self._connections.connection() as connection, connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"audit/{self._agent}"])
                row = connection.execute(_HEAD, [self._agent]).fetchone()
                yield connection, str(row[0]) if row else None
        except EntryError as error:
            raise self._address.unusable_because(
                "an entry cannot be read", "Export the record, then remove the schema audit to begin a new one"
            ) from error

    def _last(self, connection: PgConnection) -> Entry | None:
        row = connection.execute(_LAST, [self._agent]).fetchone()
        return Entry.read(row[0]) if row else None

    def _insert(self, connection: PgConnection, last: Entry | None, facts: Sequence[AuditFact]) -> Head:
        entries = [*chained(Head.of(last), facts, self._seal)]
        with connection.cursor() as cursor:
            cursor.executemany(_INSERT, [(self._agent, entry.seq, entry.line()) for entry in entries])
        head = Head.of(entries[-1])
        connection.execute(_PUT_HEAD, [self._agent, head.line(self._seal)])
        return head

    def _lines(self, connection: PgConnection, *, newest_first: bool = False) -> Iterator[str]:
        after: int | None = None
        order: LiteralString = "DESC" if newest_first else "ASC"
        beyond: LiteralString = "seq < %s" if newest_first else "seq > %s"
        while True:
            rows = connection.execute(
                f"SELECT seq, line FROM audit.entry WHERE agent = %s AND (%s::bigint IS NULL OR {beyond}) "  # noqa: S608
                f"ORDER BY seq {order} LIMIT {_PAGE}",
                [self._agent, after, after],
            ).fetchall()
            yield from (str(line) for _, line in rows)
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]
