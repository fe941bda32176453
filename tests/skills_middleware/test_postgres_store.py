from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import LiteralString

import psycopg
import pytest

from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
from ai_platform_engineering.skills_middleware.store.postgres import PostgresSkillStore
from ai_platform_engineering.skills_middleware.store.store import SkillKey, SkillStoreError
from tests.services.postgres import PASSWORD, new_database, postgres_server
from tests.skills_middleware.store_contract import OpenStore, StoreContract, new_skill

pytest_plugins = ("tests.services.fixtures",)

OpenAt = Callable[[str], PostgresSkillStore]


@pytest.fixture(scope="module")
def shared_database(postgres_address: str) -> Iterator[str]:
    """One for many tests, as making one takes half a second."""
    with new_database(postgres_address) as address:
        yield address


@pytest.fixture
async def open_at() -> AsyncIterator[OpenAt]:
    opened: list[PostgresSkillStore] = []

    def open_one(address: str) -> PostgresSkillStore:
        opened.append(PostgresSkillStore(address))
        return opened[-1]

    yield open_one
    for store in opened:
        await store.aclose()


@pytest.fixture
def open_store(shared_database: str, open_at: OpenAt) -> OpenStore:
    with psycopg.connect(shared_database) as connection:
        if connection.execute("SELECT to_regclass('skills.skill')").fetchone() != (None,):
            connection.execute("TRUNCATE skills.skill")
    return lambda: open_at(shared_database)


class TestPostgres(StoreContract):
    pass


async def test_tables_are_created_once_by_processes_that_start_together(database: str, open_at: OpenAt) -> None:
    stores = [open_at(database) for _ in range(5)]
    await asyncio.gather(*(store.create(new_skill(f"skill-{number}"), None) for number, store in enumerate(stores)))
    assert len(await stores[0].load()) == 5


FOREIGN = "Postgres at .* another program.*another database in SKILLS_DATABASE_URL"


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        (
            "UPDATE skills.format SET number = 99",
            r"Postgres at .* newer version of this product \(format 99; this version reads 1\)\. Update the product",
        ),
        (
            "UPDATE skills.format SET number = 0",
            FOREIGN,
        ),
        ("DELETE FROM skills.format", FOREIGN),
        ("DROP TABLE skills.format", FOREIGN),
    ],
    ids=["newer", "unknown", "no-number", "no-table"],
)
async def test_tables_of_another_format_are_left_alone(
    database: str, open_at: OpenAt, statement: LiteralString, sentence: str
) -> None:
    await open_at(database).create(new_skill(), None)
    with psycopg.connect(database) as connection:
        connection.execute(statement)
    with pytest.raises(SkillStoreError, match=sentence):
        await open_at(database).load()
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM skills.skill").fetchone() == (1,)


async def test_tables_that_are_gone_are_created_again(database: str, open_at: OpenAt) -> None:
    store = open_at(database)
    await store.create(new_skill(), None)
    version = await store.version()
    with psycopg.connect(database) as connection:
        connection.execute("DROP SCHEMA skills CASCADE")
    with pytest.raises(SkillStoreError, match="try again, which creates them"):
        await store.load()
    await store.create(new_skill(), None)
    assert await store.version() != version


async def test_text_that_cannot_be_stored_is_refused(open_store: OpenStore) -> None:
    for name in ("a\0b", "\ud800"):
        with pytest.raises(SkillStoreError):
            await open_store().get(SkillKey(name))


async def test_skills_stay_in_effect_while_the_server_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ai_platform_engineering.skills_middleware.catalog._RETRY_SECONDS", 0)
    with postgres_server() as server:
        settings = load_settings({"DATA_DIR": str(tmp_path), "SKILLS_DATABASE_URL": server.address()})
        async with started(settings) as catalog:
            assert catalog.store is not None
            created = await catalog.store.create(new_skill(), "ann")
            async with asyncio.timeout(90):
                # On a busy machine a check may run into its timeout; the catalog then keeps the skills it has.
                while "rollback" not in catalog.view(ANONYMOUS).skills:
                    await catalog.reload_changed()
            await asyncio.to_thread(server.stop, "KILL")
            await catalog.reload_changed()
            assert catalog.view(ANONYMOUS).skills["rollback"] == created
            (problem,) = catalog.status().sources[-1].problems
            assert problem.code == "unavailable"
            with pytest.raises(
                SkillStoreError, match=r"Postgres at .* cannot be used to store skills.*SKILLS_DATABASE_URL"
            ):
                await catalog.store.create(new_skill("second"), "ann")
            assert PASSWORD not in str(catalog.status())

            # A server that starts without the database has the skills of the other sources.
            async with started(settings) as other:
                assert "incident-triage" in other.view(ANONYMOUS).skills
                assert "Check that the server is running" in str(other.status().sources[-1].problems)

                await asyncio.to_thread(server.start)
                for each in (catalog, other):
                    async with asyncio.timeout(90):
                        while each.status().sources[-1].problems:
                            await each.reload_changed()
                    assert each.view(ANONYMOUS).skills["rollback"] == created


@asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[SkillCatalog]:
    catalog = SkillCatalog(settings)
    await catalog.start()
    try:
        yield catalog
    finally:
        await catalog.aclose()


def test_postgres_without_its_driver_says_what_to_install() -> None:
    program = """
import sys
sys.modules["psycopg"] = None
from ai_platform_engineering.settings import Settings, load_settings
from ai_platform_engineering.skills_middleware.catalog import SkillCatalog
try:
    SkillCatalog(load_settings({"SKILLS_DATABASE_URL": "postgresql://me:hunter2@127.0.0.1:1/skills"}, env_file=None))
except Exception as error:
    print(type(error).__name__, error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8").stdout
    assert said.startswith("SettingsError SKILLS_DATABASE_URL needs psycopg, which is not installed: run `make setup")
    assert "hunter2" not in said
