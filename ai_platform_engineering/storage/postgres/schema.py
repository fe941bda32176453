"""The tables of one store: a Postgres schema of their own, whose table `format` has the version of the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from ai_platform_engineering.storage.checkup import StoreCheckup
from ai_platform_engineering.utils.postgres_address import PostgresAddress

PgConnection = psycopg.Connection[Any]

_CREATE: LiteralString = "CREATE SCHEMA IF NOT EXISTS {schema}; CREATE TABLE {schema}.format (number int NOT NULL)"


@dataclass(frozen=True, slots=True)
class Schema:
    """`migrations` are the statements that lead from a format to the next one."""

    name: str
    format: int
    tables: LiteralString
    migrations: Mapping[int, LiteralString] = field(default_factory=lambda: MappingProxyType({}))

    def prepare(self, address: PostgresAddress, extend: Callable[[PgConnection], None] | None = None) -> None:
        """Create the tables, or migrate those of an earlier format. If two processes start at once, the second waits.

        `extend` is called before the tables are created. Raises the error of `address` with the reason and the way out.
        """
        try:
            with address.connect() as connection:
                found = self._found(connection)
                if found != self.format:
                    with connection.transaction():
                        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [self.name])
                        self._update(address, connection, extend)
        except psycopg.Error as error:
            raise address.unusable(error) from error

    def check_up(self, name: str, address: PostgresAddress, table: str, entries: str) -> StoreCheckup:
        """The row of `platform-engineer doctor`, with the number of rows of `table`. Creates nothing."""
        checkup = StoreCheckup(name, "postgres", address.place)
        try:
            with address.connect() as opened:
                connection: PgConnection = opened
                found = self._found(connection)
                if found != self.format and (found is not None or self._has_tables(connection)):
                    self._refuse_unknown(address, found)
                if found is None:
                    return checkup
                query = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(self.name, table))
                count = connection.execute(query).fetchall()[0][0]
        except psycopg.Error as error:
            return checkup.failed(str(address.unusable(error)))
        except address.error as error:
            return checkup.failed(str(error))
        return checkup.opened(**{entries: count, "format": found})

    def _update(
        self, address: PostgresAddress, connection: PgConnection, extend: Callable[[PgConnection], None] | None
    ) -> None:
        found = self._found(connection)
        if found is None and not self._has_tables(connection):
            if extend is not None:
                extend(connection)
            connection.execute(sql.SQL(_CREATE).format(schema=sql.Identifier(self.name)))
            connection.execute(self.tables)
            self._write(connection, "INSERT INTO {} VALUES (%s)")
            return
        self._refuse_unknown(address, found)
        if found is not None and found < self.format:
            for step in range(found, self.format):
                connection.execute(self.migrations[step])
            self._write(connection, "UPDATE {} SET number = %s")

    def _refuse_unknown(self, address: PostgresAddress, found: int | None) -> None:
        """Raise unless the tables have this format, or one that can be migrated."""
        if found is None or (found < self.format and found not in self.migrations):
            raise address.unusable_because(
                f"its schema {self.name} was created by another program",
                f"Name another database in {address.setting}, or remove that schema",
            )
        if found > self.format:
            raise address.unusable_because(
                f"its tables were written by a newer version of this product (format {found}; this version reads "
                f"{self.format})",
                f"Update the product, or name another database in {address.setting}",
            )

    def _write(self, connection: PgConnection, statement: LiteralString) -> None:
        connection.execute(sql.SQL(statement).format(sql.Identifier(self.name, "format")), [self.format])

    def _found(self, connection: PgConnection) -> int | None:
        """The format of the tables; None if it is not stored, or not once."""
        if not self._has_tables(connection, "format"):
            return None
        query = sql.SQL("SELECT number FROM {}").format(sql.Identifier(self.name, "format"))
        rows = connection.execute(query).fetchall()
        return int(rows[0][0]) if len(rows) == 1 else None

    def _has_tables(self, connection: PgConnection, table: str = "%") -> bool:
        # Not `to_regclass`: in a transaction that waited for another process, it may not see that process's tables.
        query: LiteralString = "SELECT FROM pg_catalog.pg_tables WHERE schemaname = %s AND tablename LIKE %s"
        return connection.execute(query, [self.name, table]).rowcount > 0
