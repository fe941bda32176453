from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from ai_platform_engineering.storage.postgres.schema import Schema
from ai_platform_engineering.utils.postgres_address import PostgresAddress

pytest_plugins = ("tests.services.fixtures",)

FIRST = Schema("parts", 1, "CREATE TABLE parts.part (name text)")
THIRD = Schema(
    "parts",
    3,
    "CREATE TABLE parts.part (name text, price int, stock int)",
    {1: "ALTER TABLE parts.part ADD price int", 2: "ALTER TABLE parts.part ADD stock int"},
)


class PartsError(Exception):
    pass


class PartsAddress(PostgresAddress):
    setting = "PARTS_DSN"
    purpose = "to store parts"
    error = PartsError
    tables_gone = "Its tables are gone"


def rows(database: str, query: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(database) as connection:
        return connection.execute(query).fetchall()


def test_an_earlier_format_is_migrated_with_its_rows(database: str) -> None:
    address = PartsAddress(database)
    FIRST.prepare(address)
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO parts.part VALUES ('bolt')")
    THIRD.prepare(address)
    THIRD.prepare(address)
    assert rows(database, "SELECT * FROM parts.part") == [("bolt", None, None)]
    assert rows(database, "SELECT number FROM parts.format") == [(3,)]
    with pytest.raises(PartsError, match=r"newer version .*format 3; this version reads 1.*PARTS_DSN"):
        FIRST.prepare(address)


def test_a_format_without_a_migration_is_left_alone(database: str) -> None:
    FIRST.prepare(PartsAddress(database))
    with pytest.raises(PartsError, match=r"created by another program\..*remove that schema"):
        Schema("parts", 2, "CREATE TABLE parts.other ()").prepare(PartsAddress(database))
    assert rows(database, "SELECT number FROM parts.format") == [(1,)]


def test_processes_that_start_together_create_and_migrate_once(database: str) -> None:
    address = PartsAddress(database)
    for schema in (FIRST, THIRD):
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: schema.prepare(address), range(8)))  # noqa: B023 - all end within the iteration
    assert rows(database, "SELECT number FROM parts.format") == [(3,)]
