"""The format versions of the files with conversations."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.types import Command

from ai_platform_engineering.settings import Settings, SettingsError, load_settings
from ai_platform_engineering.storage.data_files import check_data_files
from ai_platform_engineering.utils.checkpointer import FallbackSaver, checkpointer_for, forget, settle
from tests.fixtures.store_files import STORES
from tests.utils.test_checkpointer import agent_with, ask, graph_with, states, thread

FILES = {"supervisor": "conversations.db", "argocd": "conversations-argocd.db"}
VERSIONS = {"supervisor": 1, "argocd": 2}
BOTH = pytest.mark.parametrize("name", FILES)


def settings_for(folder: Path) -> Settings:
    return load_settings({"DATA_DIR": str(folder)}, None)


def version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


async def opened(folder: Path, name: str) -> None:
    async with checkpointer_for(settings_for(folder), name) as saver:
        assert saver is not None


@BOTH
async def test_a_new_file_has_a_version(tmp_path: Path, name: str) -> None:
    await opened(tmp_path, name)
    assert version(tmp_path / FILES[name]) == VERSIONS[name]


@BOTH
@pytest.mark.parametrize("found", [3, 99])
async def test_a_newer_file_is_refused(tmp_path: Path, name: str, found: int) -> None:
    await opened(tmp_path, name)
    path = tmp_path / FILES[name]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {found}")
    sentence = (
        f"{path} was written by a newer version of this product (format {found}; this version reads up to "  # noqa: S608
        f"{VERSIONS[name]}). Update "
        "the product, choose another directory with DATA_DIR, or set CONVERSATIONS=memory."
    )
    with pytest.raises(SettingsError) as refused:
        await opened(tmp_path, name)
    assert str(refused.value) == sentence
    with pytest.raises(SettingsError) as refused:
        check_data_files(settings_for(tmp_path), name)
    assert str(refused.value) == sentence
    assert version(path) == found, "the refused file is not changed"


@BOTH
@pytest.mark.parametrize("foreign", ["PRAGMA user_version = -1", "CREATE TABLE recipes (name TEXT)"])
async def test_a_file_of_another_program_is_refused(tmp_path: Path, name: str, foreign: str) -> None:
    path = tmp_path / FILES[name]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(foreign)
    sentence = (
        f"{path} has an unknown format: it is not a file of conversations. Move it away, choose another directory with "
        "DATA_DIR, or set CONVERSATIONS=memory."
    )
    with pytest.raises(SettingsError) as refused:
        await opened(tmp_path, name)
    assert str(refused.value) == sentence
    with pytest.raises(SettingsError, match="unknown format"):
        check_data_files(settings_for(tmp_path), name)


async def test_a_file_of_conversations_without_a_version_gets_one(tmp_path: Path) -> None:
    path = tmp_path / FILES["supervisor"]
    shutil.copyfile(STORES / "0.1.0" / path.name, path)
    assert version(path) == 0
    check_data_files(settings_for(tmp_path))
    async with checkpointer_for(settings_for(tmp_path)) as saver:
        assert saver is not None
        assert [found async for found in saver.alist(None)]
    assert version(path) == 1


async def test_pending_forms_of_a_file_without_a_version_can_be_answered(tmp_path: Path) -> None:
    path = tmp_path / FILES["argocd"]
    shutil.copyfile(STORES / "0.1.0" / path.name, path)
    assert version(path) == 0
    check_data_files(settings_for(tmp_path), "argocd")
    for _ in range(2):
        async with checkpointer_for(settings_for(tmp_path), "argocd") as saver:
            assert saver is not None
            snapshot = await graph_with(saver).aget_state(thread("nested"))
            assert [pending.value for pending in snapshot.interrupts] == ["which?"]
        assert version(path) == VERSIONS["argocd"]
    async with checkpointer_for(settings_for(tmp_path), "argocd") as saver:
        assert saver is not None
        graph = graph_with(saver)
        said = await ask(graph, "nested", Command(resume="that one"))
        assert said == ["hello", "seen 1", "ask", "answered that one"]
        await forget(graph, "nested")
        agent = agent_with(saver)
        assert (await ask(agent, "called", Command(resume="this")))[-2:] == ["this", "Four."]
        await settle(agent, "called")
        assert await states(saver, "called") == [""]
        await forget(agent, "called")
    with closing(sqlite3.connect(path)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == {"checkpoints", "writes"}
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
        assert connection.execute("SELECT count(*) FROM writes").fetchone() == (0,)


async def test_pending_forms_of_format_1_can_be_answered(tmp_path: Path) -> None:
    path = tmp_path / FILES["argocd"]
    async with checkpointer_for(settings_for(tmp_path), "argocd") as saver:
        await ask(graph_with(saver), "a", "ask")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE waiting (conversation TEXT PRIMARY KEY)")
        connection.execute("INSERT INTO waiting VALUES ('a')")
        connection.execute("PRAGMA user_version = 1")
    async with checkpointer_for(settings_for(tmp_path), "argocd") as saver:
        assert await ask(graph_with(saver), "a", Command(resume="yes")) == ["ask", "answered yes"]
    assert version(path) == VERSIONS["argocd"]


async def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / FILES["argocd"]
    shutil.copyfile(STORES / "0.1.0" / path.name, path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE waiting SET body = x'00' WHERE conversation = 'called'")
    reason = "the conversation called in it cannot be read"
    async with checkpointer_for(settings_for(tmp_path), "argocd") as saver:
        assert isinstance(saver, FallbackSaver)
        assert reason in (saver.problem or "")
    required = load_settings({"DATA_DIR": str(tmp_path), "REQUIRE_PERSISTENCE": "true"}, None)
    with pytest.raises(SettingsError, match=rf"{path} cannot be used.*{reason}.*DATA_DIR"):
        await checkpointer_for(required, "argocd").__aenter__()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM waiting WHERE body IS NOT NULL").fetchone() == (2,)
    assert version(path) == 0
