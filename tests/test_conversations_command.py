"""`platform-engineer conversations` and `DELETE /conversations/{id}`, over the files of a supervisor."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from ai_platform_engineering.cli import main
from ai_platform_engineering.events import Canceled, FinalResult
from ai_platform_engineering.multi_agents.platform_engineer.protocol_bindings.a2a.main import create_app
from tests.invariants import check
from tests.servers import Caller, calling, serving

Run = Callable[..., "asyncio.Future[tuple[int, str, str]]"]


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of the supervisor, and of the commands beside it."""
    monkeypatch.chdir(tmp_path)
    environ = {"DATA_DIR": str(tmp_path / "data"), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    return environ


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    async def run(*arguments: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, ["conversations", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run  # type: ignore[return-value]


def stored_threads(tmp_path: Path) -> set[str]:
    """The conversations of which checkpoints, or parts of them, are stored."""
    with closing(sqlite3.connect(tmp_path / "data" / "conversations.db")) as connection:
        return {
            thread_id
            for table in ("checkpoints", "writes")
            for (thread_id,) in connection.execute(f"SELECT DISTINCT thread_id FROM {table}")  # noqa: S608
        }


def stored_rows(tmp_path: Path) -> int:
    with closing(sqlite3.connect(tmp_path / "data" / "tasks.db")) as connection:
        tables = ("task", "event", "message")
        return sum(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables)  # noqa: S608


async def ask_about_versions(caller: Caller, context_id: str) -> None:
    ending = check(await caller.ask("show argocd version", context_id=context_id))
    assert isinstance(ending, FinalResult)


async def test_listing_and_showing_beside_a_running_supervisor(environ: dict[str, str], run: Run) -> None:
    code, _, error = await run("list")
    assert (code, "no task was stored there yet" in error) == (2, True)
    async with serving(create_app, environ) as url, calling(url) as caller:
        await ask_about_versions(caller, "talk-1")
        await ask_about_versions(caller, "talk-1")
        await caller.ask("Create GitHub Repo", context_id="form-1")

        code, output, _ = await run("list")
        assert code == 0
        first, second = output.splitlines()
        assert first.split()[0] == "form-1"
        assert "  1 task   " in first
        assert first.endswith("  input-required  Create GitHub Repo")
        assert second.split()[0] == "talk-1"
        assert second.endswith("  2 tasks  completed       show argocd version")
        assert (await run("list", "--limit", "1"))[1].startswith("form-1 ")
        await caller.http.patch(f"{url}/conversations/talk-1", json={"name": "Versions of Argo CD"})
        assert (await run("list"))[1].splitlines()[1].endswith("  completed       Versions of Argo CD")
        rows = [json.loads(line) for line in (await run("list", "--json"))[1].splitlines()]
        assert [row["name"] for row in rows] == [None, "Versions of Argo CD"]
        assert [(row["id"], row["tasks"], row["state"]) for row in rows] == [
            ("form-1", 1, "input-required"),
            ("talk-1", 2, "completed"),
        ]
        assert rows[0]["created"] <= rows[0]["changed"]

        _, output, _ = await run("show", "talk")
        assert output.count("> show argocd version\n\nVersion:") == 2
        _, output, _ = await run("show", "form")
        assert "> Create GitHub Repo" in output
        assert "Name of the new repository" in output
        (waiting,) = json.loads((await run("show", "form-1", "--json"))[1])["tasks"]
        assert (waiting["questions"], waiting["answer"]) == (["Create GitHub Repo"], None)
        assert waiting["forms"][0]["input_title"] == "Create GitHub Repo"

        await caller.ask("repository: demo-service", context_id="form-1")
        (done,) = json.loads((await run("show", "form-1", "--json"))[1])["tasks"]
        assert (done["state"], done["forms"]) == ("completed", [])
        assert done["questions"][1:] == ["repository: demo-service"]
        assert "demo-service" in done["answer"]

        for wrong, sentence in (("nothing", "has no conversation 'nothing'"), ("", "More than one conversation")):
            code, _, error = await run("show", wrong)
            assert (code, sentence in error) == (1, True)


async def test_a_running_supervisor_deletes_for_the_command(tmp_path: Path, environ: dict[str, str], run: Run) -> None:
    async with serving(create_app, environ) as url, calling(url) as caller:
        await ask_about_versions(caller, "talk-1")
        await caller.ask("Create GitHub Repo", context_id="form-1")
        assert stored_threads(tmp_path) == {"talk-1", "form-1"}

        code, _, error = await run("delete", "talk-1", "--yes")
        assert (code, "being written by a running supervisor" in error) == (1, True)
        code, _, error = await run("delete", "talk-1", "--url", url)
        assert (code, "--yes is required" in error) == (2, True)
        assert stored_threads(tmp_path) == {"talk-1", "form-1"}

        code, output, _ = await run("delete", "talk", "--url", url, "--yes")
        assert (code, output) == (0, "The conversation talk-1 was deleted, with 1 task.\n")
        code, _, error = await run("delete", "talk-1", "--url", url, "--yes")
        assert (code, "There is no conversation 'talk-1'" in error) == (1, True)
        code, _, error = await run("delete", "form-1", "--url", url, "--yes")
        assert (code, "waits for an answer" in error) == (1, True)
        assert stored_threads(tmp_path) == {"form-1"}

        assert (await run("delete", "form-1", "--url", url, "--yes", "--force"))[0] == 0
        assert (stored_threads(tmp_path), stored_rows(tmp_path)) == (set(), 0)
        assert (await run("list"))[1] == "There are no conversations.\n"

        # The id can be used again: nothing of the deleted conversation is left.
        await ask_about_versions(caller, "form-1")
        assert len(json.loads((await run("show", "form-1", "--json"))[1])["tasks"]) == 1


async def test_deletion_over_http_is_authenticated_and_cancels_a_run_only_if_forced(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    slow = {**environ, "OFFLINE_MODEL_DELAY": "0.2", "A2A_AUTH_SHARED_KEY": "0123456789abcdef"}
    async with serving(create_app, slow) as url, calling(url) as caller, httpx.AsyncClient(timeout=30) as http:
        target = f"{url}/conversations/talk"
        assert (await http.delete(target)).status_code == 401
        caller.http.headers["Authorization"] = http.headers["Authorization"] = "Bearer 0123456789abcdef"
        assert (await http.delete(target)).json() == {
            "error": "not_found",
            "message": "There is no conversation 'talk'.",
        }
        assert (await http.delete(target, params={"force": "yes"})).status_code == 400

        asking = asyncio.create_task(caller.ask("show argocd version", context_id="talk"))
        await caller.heard.wait()
        refused = await http.delete(target)
        assert (refused.status_code, "is running" in refused.json()["message"]) == (409, True)
        deleted = await http.delete(target, params={"force": "true"})
        assert (deleted.status_code, deleted.json()) == (200, {"id": "talk", "deleted_tasks": 1})
        assert isinstance((await asking)[-1], Canceled)
        assert (stored_threads(tmp_path), stored_rows(tmp_path)) == (set(), 0)


async def test_without_a_supervisor_the_command_deletes_itself(
    tmp_path: Path, environ: dict[str, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(create_app, environ) as url, calling(url) as caller:
        await ask_about_versions(caller, "talk-1")
        await caller.ask("Create GitHub Repo", context_id="form-1")

    code, _, error = await run("delete", "talk-1", "--yes", "--url", url)
    assert (code, "There is no supervisor at" in error) == (1, True)
    prompts: list[str] = []

    def answer(reply: str) -> None:
        monkeypatch.setattr("builtins.input", lambda prompt: prompts.append(prompt) or reply)

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    answer("")
    assert (await run("delete", "talk-1"))[:2] == (1, "Nothing was deleted.\n")
    assert prompts == ["Delete the conversation talk-1 (1 task, “show argocd version”)? [y/N] "]
    answer("y")
    assert (await run("delete", "talk-1"))[0] == 0
    code, _, error = await run("delete", "form-1")
    assert (code, "--force" in error) == (1, True)
    assert stored_threads(tmp_path) == {"form-1"}
    assert (await run("delete", "form-1", "--force"))[0] == 0
    assert (stored_threads(tmp_path), stored_rows(tmp_path)) == (set(), 0)
