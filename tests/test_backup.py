"""`platform-engineer backup`, and a supervisor that is started on the restored copy."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from ai_platform_engineering.cli import main
from ai_platform_engineering.events import FinalResult
from ai_platform_engineering.sandbox.records import GithubRepository
from ai_platform_engineering.sandbox.store import SandboxStore, sandbox_path
from tests.invariants import check
from tests.servers import CommandLine, calling


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def shown(capsys: pytest.CaptureFixture[str], context_id: str) -> list[dict[str, object]]:
    _, output, _ = run(capsys, "conversations", "show", context_id, "--json")
    tasks: list[dict[str, object]] = json.loads(output)["tasks"]
    return tasks


def repositories(data_dir: Path, name: str) -> int:
    with SandboxStore(sandbox_path(data_dir)).read() as session:
        return sum(repository.name == name for repository in session.all(GithubRepository))


async def test_a_form_is_answered_after_the_data_directory_was_lost_and_restored(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environ = {"DATA_DIR": str(data_dir), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0.01", "LOG_LEVEL": "warning"}
    backup = tmp_path / "backups" / "monday"
    async with CommandLine(["--port", "0"], environ, cwd=str(tmp_path)) as supervisor:
        async with calling(supervisor.url) as caller, calling(supervisor.url) as other:
            await caller.ask("show the status of the guestbook app", context_id="talk")
            await caller.ask("Create GitHub Repo", context_id="form")
            running = asyncio.create_task(other.ask("show argocd version", context_id="running"))
            await other.heard.wait()
            code, output, error = await asyncio.to_thread(run, capsys, "backup", str(backup))
            assert (code, error) == (0, "")
            assert output.endswith(f"{data_dir} was copied to {backup}.\n")
            await running
            await caller.ask("show argocd version", context_id="after the backup")
        await supervisor.stop(signal.SIGKILL)

    names = {path.name for path in backup.iterdir()}
    assert names >= {"tasks.db", "conversations.db", "sandbox.db"}
    assert not [name for name in names if name.endswith(("-wal", "-shm", ".lock"))]
    assert stat.S_IMODE(backup.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in backup.iterdir()} == {0o600}

    shutil.rmtree(data_dir)
    shutil.copytree(backup, data_dir)
    async with CommandLine(["--port", "0"], environ, cwd=str(tmp_path)) as restored, calling(restored.url) as caller:
        answer = check(await caller.ask("what about payments-api?", context_id="talk"))
        assert isinstance(answer, FinalResult)
        assert "payments-api" in answer.text
        done = (await caller.ask("repository: demo-service", context_id="form"))[-1]
        assert isinstance(done, FinalResult)
        assert "demo-service" in done.text
        await caller.ask("show argocd version", context_id="running")  # it waits for the run before it
    assert repositories(data_dir, "demo-service") == 1
    (form,) = shown(capsys, "form")
    assert form["questions"] == ["Create GitHub Repo", "repository: demo-service"]
    questions = [task["questions"] for task in shown(capsys, "talk")]
    assert questions == [["show the status of the guestbook app"], ["what about payments-api?"]]
    interrupted, _ = shown(capsys, "running")
    assert interrupted["state"] == "completed", "the run that the backup found in progress continues"
    assert run(capsys, "conversations", "show", "after")[0] == 1


def test_a_backup_has_one_moment_of_a_database_that_is_written_meanwhile_and_nothing_of_others(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data_dir.mkdir()
    (data_dir / "delegation.key").write_text("secret")
    (data_dir / "notes.txt").write_text("not of this product")
    (data_dir / "tasks.db.lock").touch()
    with closing(sqlite3.connect(data_dir / "slack.sqlite", isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        writer.execute("CREATE TABLE thread (id TEXT)")
        writer.execute("INSERT INTO thread VALUES ('stored')")
        writer.execute("BEGIN")
        writer.execute("INSERT INTO thread VALUES ('not committed')")
        code, output, _ = run(capsys, "backup", "copy")
        assert code == 0
        assert [line.split()[0] for line in output.splitlines()[:-1]] == ["delegation.key", "slack.sqlite"]
        writer.execute("COMMIT")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["delegation.key", "slack.sqlite"]
    assert (tmp_path / "copy/delegation.key").read_text() == "secret"
    with closing(sqlite3.connect(tmp_path / "copy/slack.sqlite")) as copy:
        assert copy.execute("SELECT id FROM thread").fetchall() == [("stored",)]


def test_a_backup_that_fails_leaves_nothing(
    tmp_path: Path, data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, error = run(capsys, "backup", "copy")
    assert (code, "has no files of this product" in error) == (1, True)
    data_dir.mkdir()
    (data_dir / "tasks.db").write_bytes(b"not a database, but long enough to have a header " * 20)
    code, _, error = run(capsys, "backup", "copy")
    assert (code, "tasks.db cannot be read: file is not a database" in error) == (1, True)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    code, _, error = run(capsys, "backup", "data")
    assert (code, "is not an empty directory" in error) == (1, True)

    (data_dir / "tasks.db").unlink()
    (data_dir / "chat_history").touch()
    monkeypatch.setenv("RAG_DATABASE_URL", "postgresql://user:password@127.0.0.1/knowledge")
    code, _, error = run(capsys, "backup", "copy")
    assert (code, error) == (0, "Not copied: the knowledge base, stored in postgres. Back up that database as well.\n")
    monkeypatch.delenv("RAG_DATABASE_URL")
    for name in ("EVENT_LOG", "SLACK_SESSIONS"):
        monkeypatch.setenv(name, "postgres")
        monkeypatch.setenv(f"{name}_POSTGRES_DSN", "postgresql://user:password@127.0.0.1/state")
    code, _, error = run(capsys, "backup", "other-copy")
    tasks, threads = error.splitlines()
    assert tasks.startswith(
        "Not copied: tasks, the audit record, usage, feedback and the receivers of push notifications, stored in "
        "postgres."
    )
    assert threads.startswith("Not copied: the threads of the Slack bot, stored in postgres.")
