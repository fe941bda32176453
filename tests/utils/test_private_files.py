from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from ai_platform_engineering.settings import SettingsError
from ai_platform_engineering.utils.private_files import create_private_file, secure_data_dir
from tests.servers import Command, CommandLine


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def test_what_a_supervisor_an_agent_and_chat_write_is_for_their_user_alone(
    tmp_path: Path, platform_engineer: Command
) -> None:
    folder = tmp_path / "made" / "by-us"
    environ = {"DATA_DIR": str(folder), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0", "ENABLE_PAGERDUTY": "false"}
    before = os.umask(0)
    try:
        folder.parent.mkdir()
        # The processes start outside of a directory that is not there yet.
        async with CommandLine(["agent", "argocd", "--port", "0"], environ, cwd="/") as agent:
            remote = {"DISTRIBUTED_AGENTS": "argocd", "ARGOCD_AGENT_URL": agent.url}
            async with (
                CommandLine(["--port", "0"], environ | remote) as supervisor,
                httpx.AsyncClient(timeout=60) as http,
            ):
                part = {"kind": "text", "text": "show argocd version and list my Jira tickets"}
                message = {"role": "user", "parts": [part], "messageId": "m1"}
                call = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
                answer = (await http.post(supervisor.url, json=call)).json()
                assert answer["result"]["status"]["state"] == "completed"
                report = {"trace_id": answer["result"]["metadata"]["trace_id"], "feedback_type": "like"}
                await http.post(f"{supervisor.url}/feedback", json=report)
                written = modes(folder)
        ended = await asyncio.to_thread(platform_engineer, "chat", "how do I run ArgoCD remotely?", **environ)
        assert ended.returncode == 0, ended.stderr
        written |= modes(folder)
    finally:
        os.umask(before)
    expected = {"tasks.db", "tasks-argocd.db", "conversations.db", "sandbox.db", "knowledge.db", "delegation.key"}
    assert expected | {"tasks.db-wal", "tasks.db.lock", "conversations.db-wal"} <= written.keys()
    assert {name: oct(mode) for name, mode in written.items() if mode & 0o077} == {}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_others_could_read_is_closed_at_start(tmp_path: Path, platform_engineer: Command) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    (folder / "conversations.db").touch(mode=0o644)
    (folder / "chat.log").touch(mode=0o664)
    ended = platform_engineer("chat", "show argocd version", SANDBOX="true", OFFLINE_MODEL_DELAY="0")
    assert ended.returncode == 0, ended.stderr
    assert {name for name, mode in modes(folder).items() if mode & 0o077} == set()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_it_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "tasks-jira.db").touch(mode=0o644)
    for _ in range(2):
        secure_data_dir(tmp_path)
    [line] = [record.getMessage() for record in caplog.records]
    assert line == f"Other users could read files in {tmp_path}. They no longer can: tasks-jira.db, ."


def test_a_directory_with_files_of_others_is_left_open_and_ours_in_it_are_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "tasks.db").touch(mode=0o644)
    (tmp_path / "report.txt").touch(mode=0o644)
    (tmp_path / "slack.sqlite").symlink_to(tmp_path / "report.txt")
    secure_data_dir(tmp_path)
    assert modes(tmp_path) == {"tasks.db": 0o600, "report.txt": 0o644, "slack.sqlite": 0o644}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert "`chmod 700` makes the directory private" in caplog.text


def test_a_file_of_another_user_that_others_can_read_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tasks.db").touch(mode=0o644)

    def refused(*_: object) -> None:
        raise PermissionError

    # A test cannot give a file to another user unless root runs it, and root may change every file.
    monkeypatch.setattr(Path, "chmod", refused)
    with pytest.raises(SettingsError, match=r"tasks\.db can be read by other users and belongs to another one"):
        secure_data_dir(tmp_path)


def test_locks_on_an_existing_file_are_not_released(tmp_path: Path) -> None:
    """To close a second handle of a file would release the locks that SQLite holds on it."""
    path = tmp_path / "tasks.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        create_private_file(path)
        program = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN EXCLUSIVE')"
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "database is locked" in ended.stderr
