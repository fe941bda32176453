"""`platform-engineer memories` and the doctor's row, beside a supervisor and without one."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from ai_platform_engineering.cli import main
from ai_platform_engineering.identity.principal import ANONYMOUS, Principal
from ai_platform_engineering.settings import SettingsError, load_settings
from ai_platform_engineering.storage.memories.memory import owner_of
from ai_platform_engineering.storage.memories.stores import check_up_memories, memories_for, memory_store
from tests.ports import reserved_port
from tests.storage.memories.memory_stores import KINDS, memory_store_of

pytest_plugins = ("tests.services.fixtures",)

Run = Callable[..., "asyncio.Future[tuple[int, str, str]]"]

SECRET = "hunter2hunter2"
ADDRESSES = {
    "postgres": ("LANGGRAPH_STORE_POSTGRES_DSN", f"postgresql://me:{SECRET}@127.0.0.1:%s/notes"),
    "mongodb": ("LANGGRAPH_STORE_MONGODB_URI", f"mongodb://me:{SECRET}@127.0.0.1:%s/notes"),
    "redis": ("LANGGRAPH_STORE_REDIS_URL", f"redis://me:{SECRET}@127.0.0.1:%s/0"),
}
PACKAGES = {"postgres": "langgraph.store.postgres.aio", "mongodb": "pymongo", "redis": "redis.asyncio"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("LANGGRAPH_STORE_TYPE", "sqlite")

    async def run(*arguments: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, ["memories", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run  # type: ignore[return-value]


async def test_memories_are_listed_and_forgotten_beside_a_supervisor(run: Run, tmp_path: Path) -> None:
    assert await run("list") == (0, "Nothing is remembered.\n", "")
    assert await run("forget", "1") == (1, "", "platform-engineer: There is no memory '1'.\n")
    assert not (tmp_path / "data").exists()
    async with memories_for(load_settings()) as memories:
        assert memories is not None
        jane, shared = owner_of(ANONYMOUS, "slack:T1/U1"), owner_of(ANONYMOUS, None)
        ann = owner_of(Principal("token", "ann"), None)
        assert jane is not None
        assert shared is not None
        assert ann is not None
        first = await memories.remember(jane, "Größe 42")
        second = await memories.remember(jane, "I deploy to eu-west-1.")
        await memories.remember(shared, "of no user")
        await memories.remember(ann, "of ann")

        code, output, _ = await run("list", "--user", "slack:T1/U1", "--json")
        assert code == 0
        assert [json.loads(line) for line in output.splitlines()] == [second.facts(), first.facts()]
        code, output, _ = await run("list", "--user", "slack:T1/U1")
        assert output.splitlines()[1] == f"{first.id}  {first.created:%Y-%m-%d %H:%M:%S}  Größe 42"
        assert "of no user" in (await run("list"))[1]
        assert "of ann" in (await run("list", "--subject", "ann"))[1]
        assert await run("list", "--user", "ann") == (0, "Nothing is remembered.\n", "")

        assert (await run("forget", first.id))[0] == 1
        forgotten = await run("forget", first.id, "--user", "slack:T1/U1")
        assert forgotten == (0, "Forgotten: Größe 42\n", "")
        assert await memories.list_all(jane) == (second,)
        code, _, error = await run("forget-all", "--user", "slack:T1/U1")
        assert code == 2
        assert "--yes is required to forget all memories of slack:T1/U1" in error
        forgotten = await run("forget-all", "--user", "slack:T1/U1", "--yes")
        assert forgotten == (0, "1 memory was forgotten.\n", "")
        assert await run("forget-all", "--user", "slack:T1/U1", "--yes", "--json") == (0, '{"forgotten": 0}\n', "")
        assert len(await memories.list_all(shared)) == 1


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [("", "Memories are off. LANGGRAPH_STORE_TYPE enables them"), ("memory", "Send it GET /memories")],
)
async def test_without_a_store_the_commands_say_so(
    run: Run, monkeypatch: pytest.MonkeyPatch, kind: str, sentence: str
) -> None:
    monkeypatch.setenv("LANGGRAPH_STORE_TYPE", kind)
    code, _, error = await run("list")
    assert code == 2
    assert sentence in error


async def test_a_store_that_cannot_be_used_fails_the_command(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("redis")
    with reserved_port() as port:
        monkeypatch.setenv("LANGGRAPH_STORE_TYPE", "redis")
        monkeypatch.setenv("LANGGRAPH_STORE_REDIS_URL", f"redis://:{SECRET}@127.0.0.1:{port}/0")
        code, output, error = await run("list")
    assert (code, output) == (1, "")
    assert f"Redis at 127.0.0.1:{port}/0 cannot be used to store memories: the connection failed." in error
    assert "LANGGRAPH_STORE_REDIS_URL" in error
    assert SECRET not in error


@pytest.mark.parametrize("kind", KINDS)
async def test_the_doctor_reports_a_store_that_can_be_used(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with memory_store_of(kind, tmp_path, request) as store:
        found = await check_up_memories(store.settings())
        assert found is not None
        reachable = None if kind in {"sqlite", "memory"} else True
        assert (found.kind, found.usable, found.problem) == (kind, reachable, None)
        assert not (tmp_path / "memories.db").exists()


@pytest.mark.long
@pytest.mark.parametrize("kind", ADDRESSES)
async def test_the_doctor_reports_a_server_that_is_not_there(kind: str) -> None:
    pytest.importorskip(PACKAGES[kind])
    variable, address = ADDRESSES[kind]
    with reserved_port() as port:
        settings = load_settings({"LANGGRAPH_STORE_TYPE": kind, variable: address % port}, None)
        found = await check_up_memories(settings)
    assert found is not None
    assert (found.kind, found.usable) == (kind, False)
    assert f"127.0.0.1:{port}" in found.place
    assert f"Check that the server is running, and the host, user and password in {variable}." in str(found.problem)
    assert SECRET not in repr(found)


async def test_the_doctor_has_no_row_for_memories_that_are_off(tmp_path: Path) -> None:
    assert await check_up_memories(load_settings({"DATA_DIR": str(tmp_path)}, None)) is None
    (tmp_path / "memories.db").write_bytes(b"no database" * 1000)
    environ = {"DATA_DIR": str(tmp_path), "LANGGRAPH_STORE_TYPE": "sqlite"}
    found = await check_up_memories(load_settings(environ, None))
    assert found is not None
    assert found.problem == (
        f"SQLite at {tmp_path / 'memories.db'} cannot be used to store memories: file is not a database. Check the "
        "file, or choose another directory with DATA_DIR."
    )


@pytest.mark.parametrize("kind", ADDRESSES)
def test_a_missing_package_or_a_wrong_address_stops_the_start(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(PACKAGES[kind])
    variable, address = ADDRESSES[kind]
    environ = {"LANGGRAPH_STORE_TYPE": kind, variable: address.replace(SECRET, f"{SECRET}/@:x") % "port"}
    with pytest.raises(SettingsError, match=f"{variable} is not the address of") as refused:
        memory_store(load_settings(environ, None))
    assert SECRET not in str(refused.value)
    monkeypatch.delitem(sys.modules, f"ai_platform_engineering.storage.memories.{kind}_store", raising=False)
    monkeypatch.delitem(sys.modules, f"ai_platform_engineering.storage.servers.{kind}", raising=False)
    monkeypatch.setitem(sys.modules, PACKAGES[kind], None)
    with pytest.raises(SettingsError, match=f"LANGGRAPH_STORE_TYPE={kind} needs a package that is not installed: run"):
        memory_store(load_settings({"LANGGRAPH_STORE_TYPE": kind, variable: address % 1}, None))


async def test_a_backup_has_the_memories(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = owner_of(ANONYMOUS, "jane")
    assert owner is not None
    async with memories_for(load_settings()) as memories:
        assert memories is not None
        stored = await memories.remember(owner, "I deploy to eu-west-1.")
        assert await asyncio.to_thread(main, ["backup", str(tmp_path / "backup")]) == 0
    assert capsys.readouterr().err == ""
    assert (tmp_path / "backup" / "memories.db").stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(tmp_path / "backup" / "memories.db")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "backup"))
    code, output, _ = await run("list", "--user", "jane", "--json")
    assert (code, json.loads(output)) == (0, stored.facts())
    monkeypatch.setenv("LANGGRAPH_STORE_TYPE", "redis")
    monkeypatch.setenv("LANGGRAPH_STORE_REDIS_URL", "redis://127.0.0.1:1")
    assert await asyncio.to_thread(main, ["backup", str(tmp_path / "another")]) == 0
    assert "Not copied: the memories, stored in redis." in capsys.readouterr().err
