"""Damaged files and a full disk: found at the start, reported, and survived."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.storage.checkpoints.file_saver import FileSaver
from ai_platform_engineering.storage.data_files import ConversationsFileError, check_data_files
from ai_platform_engineering.storage.event_log.file import LogFile
from ai_platform_engineering.storage.event_log.log_errors import LogReadError
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from ai_platform_engineering.storage.sqlite import damage
from tests.servers import Command, CommandLine

SECONDS = 60
HEADER_BYTES = 100
"""SQLite counts the commits there, also an empty one."""


def overwrite_middle(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 4 // 4096 * 4096)
        file.write(bytes(size // 2))


def damaged_log(path: Path) -> None:
    with closing(LogFile(path)) as file:
        rows = [(1, seq, 0, 0, os.urandom(500)) for seq in range(500)]
        file.connection.executemany(
            "INSERT INTO event (task, seq, at_ns, is_status, body) VALUES (?, ?, ?, ?, ?)", rows
        )
    overwrite_middle(path)


def foreign_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE other (x); INSERT INTO other VALUES (1)")


def damaged_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE other (x)")
        connection.executemany("INSERT INTO other VALUES (?)", [(os.urandom(500),) for _ in range(500)])
    overwrite_middle(path)


@pytest.mark.parametrize(
    ("damage_file", "way_out"), [(damaged_log, "Restore it from a backup"), (foreign_database, "Move it away")]
)
def test_the_server_does_not_start_with_tasks_it_cannot_read(
    tmp_path: Path, platform_engineer: Command, damage_file: Any, way_out: str
) -> None:
    path = tmp_path / "tasks.db"
    damage_file(path)
    before = path.read_bytes()[HEADER_BYTES:]
    started = platform_engineer("serve", "--port", "0", DATA_DIR=str(tmp_path))
    assert started.returncode == 2
    (sentence,) = [line for line in started.stderr.splitlines() if "WARNING" not in line]
    assert str(path) in sentence
    assert way_out in sentence
    assert path.read_bytes()[HEADER_BYTES:] == before


async def test_damage_in_a_large_file_is_found_after_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged_log(tmp_path / "tasks.db")
    monkeypatch.setattr(damage, "MAX_BYTES_AT_START", 0)
    check_data_files(load_settings({"DATA_DIR": str(tmp_path)}, None))
    async with SqliteEventLog(tmp_path / "tasks.db").opened() as log, asyncio.timeout(SECONDS):
        while log.problem is None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert log.problem == "Tasks cannot be stored: the file is damaged, see the log of the server."


async def test_a_damaged_file_of_conversations_is_not_opened(tmp_path: Path) -> None:
    damaged_database(tmp_path / "conversations.db")
    with pytest.raises(ConversationsFileError, match=r"malformed\. Restore it from a backup"):
        async with FileSaver.opened(load_settings({"DATA_DIR": str(tmp_path)}, None)):
            pass


def test_other_damaged_files_are_named_at_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    damaged_database(tmp_path / "skills.db")
    (tmp_path / "knowledge.db").mkdir()
    (tmp_path / "feedback.sqlite").write_bytes(b"not a database" * 100)
    with caplog.at_level(logging.WARNING):
        check_data_files(load_settings({"DATA_DIR": str(tmp_path)}, None))
    found = {
        name: line
        for line in caplog.messages
        for name in ("skills.db", "knowledge.db", "feedback.sqlite")
        if name in line
    }
    assert "malformed. Restore it from a backup" in found["skills.db"]
    assert "Is a directory. Move that directory away" in found["knowledge.db"]
    assert "file is not a database. Restore it from a backup" in found["feedback.sqlite"]


async def test_tasks_that_cannot_be_read_are_an_error_with_a_sentence(tmp_path: Path) -> None:
    damaged_log(tmp_path / "tasks.db")
    async with SqliteEventLog(tmp_path / "tasks.db").opened() as log:
        with pytest.raises(LogReadError, match="file of tasks cannot be read"):
            await log._readers.run(lambda connection: connection.execute("SELECT body FROM event").fetchall())


@pytest.mark.long
async def test_a_full_disk_is_reported_and_an_open_form_survives_it(tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", "LOG_LEVEL": "warning"}
    async with (
        CommandLine(["serve", "--port", "0"], environ) as server,
        httpx.AsyncClient(base_url=server.url, timeout=SECONDS, headers={"A2A-Version": "1.0"}) as http,
    ):
        assert server.process is not None

        def limit_files(size: int) -> None:
            """Let no file grow beyond `size`, as on a full disk."""
            assert server.process is not None
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        async def send(part: dict[str, Any], **fields: str) -> httpx.Response:
            message = {"role": "ROLE_USER", "messageId": os.urandom(8).hex(), "parts": [part], **fields}
            return await http.post("/message:send", json={"message": message})

        asked = (await send({"text": "create a jira ticket in project PLAT"})).json()["task"]
        assert asked["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        answer = {"data": {"resume": {"values": {"summary": "Login is broken"}}}}
        form = {"taskId": asked["id"], "contextId": asked["contextId"]}

        limit_files(0)
        for response in (await send({"text": "show argocd version"}), await send(answer, **form)):
            assert response.status_code == 503
            assert "Send the request again when the disk can be written again" in response.json()["error"]["message"]
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()["status"]) == (503, "degraded")
        assert ready.json()["reason"].startswith("Tasks cannot be stored: ")
        assert (await http.get(f"/tasks/{asked['id']}")).json()["status"] == asked["status"]

        limit_files(resource.RLIM_INFINITY)
        async with asyncio.timeout(SECONDS):
            while (await http.get("/readyz")).status_code != 200:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        answered = (await send(answer, **form)).json()["task"]
        assert answered["status"]["state"] == "TASK_STATE_COMPLETED"
        assert "Login is broken" in str(answered)
