"""The skill store in Postgres, for supervisors on several machines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, LiteralString

import psycopg
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from ai_platform_engineering.skills_middleware.skill import Skill, SkillContent
from ai_platform_engineering.skills_middleware.store.rows import (
    SkillRow,
    check_unchanged,
    content_from,
    key_values,
    skill_from,
)
from ai_platform_engineering.skills_middleware.store.store import (
    AlreadyExistsError,
    NewSkill,
    NotFoundError,
    SkillKey,
    SkillStoreError,
)
from ai_platform_engineering.storage.postgres.schema import Schema
from ai_platform_engineering.utils.postgres_address import PostgresAddress

FORMAT: Final = 1
"""The version of the tables, stored in `skills.format`. Format 1 is the first, so there is none to migrate from."""

_MAX_CONNECTIONS: Final = 4
_WAIT_SECONDS: Final = 2.0

_TABLES: Final[LiteralString] = """
CREATE TABLE skills.skill (
    name text COLLATE "C" NOT NULL,
    visibility text COLLATE "C" NOT NULL,
    holder text COLLATE "C" NOT NULL,
    digest text NOT NULL,
    head text NOT NULL,
    content text NOT NULL,
    PRIMARY KEY (name, visibility, holder)
);
CREATE TABLE skills.generation (id text NOT NULL, number bigint NOT NULL);
INSERT INTO skills.generation VALUES (md5(random()::text), 0);
"""
_SCHEMA: Final = Schema("skills", FORMAT, _TABLES)
_HEAD: Final[LiteralString] = (
    "SELECT digest, head FROM skills.skill WHERE name = %s AND visibility = %s AND holder = %s"
)
_CONTENT: Final[LiteralString] = "SELECT content FROM skills.skill WHERE name = %s AND visibility = %s AND holder = %s"
_DELETE: Final[LiteralString] = "DELETE FROM skills.skill WHERE name = %s AND visibility = %s AND holder = %s"
_INSERT: Final[LiteralString] = "INSERT INTO skills.skill VALUES (%s, %s, %s, %s, %s, %s)"
_LOAD: Final[LiteralString] = "SELECT head FROM skills.skill ORDER BY name, visibility, holder"

_Connection = AsyncConnection[tuple[Any, ...]]


class SkillsAddress(PostgresAddress):
    setting = "SKILLS_DATABASE_URL"
    purpose = "to store skills"
    error = SkillStoreError
    tables_gone = "Its tables are gone; try again, which creates them"


class PostgresSkillStore:
    """Connects and creates its tables when it is first used."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._preparing = asyncio.Lock()
        self._address: SkillsAddress | None = None
        self._pool: AsyncConnectionPool[_Connection] | None = None
        self._is_prepared = False

    async def create(self, new: NewSkill, by: str | None) -> Skill:
        row = SkillRow.created(new, by)
        async with self._writing() as connection:
            await _insert(connection, new.key, row)
        return row.skill

    async def replace(self, key: SkillKey, new: NewSkill, digest: str | None, by: str | None) -> Skill:
        async with self._writing() as connection:
            stored, head = await _digest_and_head(connection, key)
            check_unchanged(key, stored, digest)
            row = SkillRow.replaced(new, skill_from(head), by)
            await connection.execute(_DELETE, key_values(key))
            await _insert(connection, new.key, row)
        return row.skill

    async def delete(self, key: SkillKey, digest: str | None) -> None:
        async with self._writing() as connection:
            stored, _ = await _digest_and_head(connection, key)
            check_unchanged(key, stored, digest)
            await connection.execute(_DELETE, key_values(key))

    async def get(self, key: SkillKey) -> Skill:
        async with self._connected() as connection:
            _, head = await _digest_and_head(connection, key)
        return skill_from(head)

    async def content(self, key: SkillKey) -> SkillContent:
        async with self._connected() as connection:
            found = await (await connection.execute(_CONTENT, key_values(key))).fetchone()
        if found is None:
            raise NotFoundError(key)
        return content_from(found[0])

    async def load(self) -> tuple[Skill, ...]:
        async with self._connected() as connection:
            rows = await (await connection.execute(_LOAD)).fetchall()
        return await asyncio.to_thread(lambda: tuple(skill_from(head) for (head,) in rows))

    async def version(self) -> str:
        async with self._connected() as connection:
            found = await (await connection.execute("SELECT id, number FROM skills.generation")).fetchone()
        return "" if found is None else f"{found[0]}:{found[1]}"

    async def aclose(self) -> None:
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[_Connection]:
        """A write transaction. The row lock on `generation` serializes writers."""
        async with self._connected() as connection, connection.transaction():
            await connection.execute("UPDATE skills.generation SET number = number + 1")
            yield connection

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[_Connection]:
        """A connection in autocommit mode; failures become a `SkillStoreError`."""
        address, pool = await self._prepared()
        try:
            async with pool.connection() as connection:
                yield connection
        except PoolTimeout as error:
            # The pool's error has no reason; a direct connection attempt raises the actual one.
            await _probe(address)
            raise address.unusable_because("all connections are in use", "Try again later") from error
        except PoolClosed as error:
            raise address.unusable_because("it is closed", "Try again after a restart") from error
        except psycopg.errors.UndefinedTable as error:
            self._is_prepared = False
            raise address.unusable(error) from error
        except psycopg.Error as error:
            raise address.unusable(error) from error
        except UnicodeEncodeError as error:
            raise SkillStoreError(f"{error.object[:80]!r} is not text that can be stored.") from error

    async def _prepared(self) -> tuple[SkillsAddress, AsyncConnectionPool[_Connection]]:
        async with self._preparing:
            if self._address is None:
                self._address = SkillsAddress(self._url)
            if not self._is_prepared:
                await asyncio.to_thread(_SCHEMA.prepare, self._address)
                self._is_prepared = True
            if self._pool is None:
                self._pool = AsyncConnectionPool(
                    self._address.conninfo,
                    min_size=0,
                    max_size=_MAX_CONNECTIONS,
                    timeout=_WAIT_SECONDS,
                    reconnect_timeout=_WAIT_SECONDS / 2,
                    num_workers=1,
                    open=False,
                    kwargs={"autocommit": True},
                    # Detects a restarted server before the connection is used.
                    check=AsyncConnectionPool.check_connection,
                )
                await self._pool.open()
            return self._address, self._pool


async def _probe(address: SkillsAddress) -> None:
    try:
        await (await AsyncConnection.connect(address.conninfo)).close()
    except psycopg.Error as error:
        raise address.unusable(error) from error


async def _insert(connection: _Connection, key: SkillKey, row: SkillRow) -> None:
    found = await (await connection.execute(_HEAD, key_values(key))).fetchone()
    if found is not None:
        raise AlreadyExistsError(key, found[0])
    await connection.execute(_INSERT, (row.name, row.visibility, row.holder, row.digest, row.head, row.content))


async def _digest_and_head(connection: _Connection, key: SkillKey) -> tuple[str, str]:
    found = await (await connection.execute(_HEAD, key_values(key))).fetchone()
    if found is None:
        raise NotFoundError(key)
    return found[0], found[1]
