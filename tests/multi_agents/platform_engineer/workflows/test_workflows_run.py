"""`workflows run` as a process: a supervisor that it starts itself, and one that runs already."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.servers import CommandLine

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def _run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        known = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OFFLINE_MODEL_DELAY": "0"}
        command = arguments if arguments[0] == "chat" else ("workflows", "run", *arguments)
        return subprocess.run(
            [sys.executable, "-m", "ai_platform_engineering.cli", *command],
            env={**known, "DATA_DIR": str(tmp_path / "data"), **environ},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )

    return _run


def test_done_and_the_second_time_not(run: Run) -> None:
    done = run("Create GitHub Repo", "--set", "repository=demo", "--set", "private=no")
    assert done.returncode == 0, done.stderr
    assert "https://github.acme.example/acme/demo" in done.stdout
    again = run("create_github_repo", "--set", "repository=demo")
    assert again.returncode == 1, "a step failed"
    assert "exists already" in again.stdout


def test_what_is_left_open_is_told_with_how_to_answer_it(run: Run) -> None:
    bad = run("create_github_repo", "--set", "repository=not a name")
    assert bad.returncode == 3
    assert bad.stdout == ""
    assert "`repository` takes text" in bad.stderr
    assert "platform-engineer chat --task " in bad.stderr


def test_an_approval_inside_is_left_open(run: Run) -> None:
    waiting = run("roll_back_application", "--set", "application=payments-api", "--set", "reason=wrong tag")
    assert waiting.returncode == 3
    assert "--approve" in waiting.stderr


def _task_of(waiting: subprocess.CompletedProcess[str]) -> str:
    (task,) = {*re.findall(r"chat --task (\S+)", waiting.stderr)}
    return task


def test_an_edited_approval_is_done_and_the_next_step_follows(run: Run) -> None:
    values = ("--set", "application=payments-api", "--set", "reason=wrong tag", "--set", "new_ticket=yes")
    waiting = run("roll_back_application", *values)
    assert waiting.returncode == 3
    done = run("chat", "--task", _task_of(waiting), "--approve", "--answer", "application=checkout")
    assert done.returncode == 0, done.stderr
    assert "The workflow “Roll Back Application” is done." in done.stdout
    assert "Rolled checkout back" in done.stdout
    assert "checkout was rolled back" in done.stdout, "the ticket names what was really rolled back"


def test_a_workflow_that_fails_after_an_answer_is_a_failure(run: Run) -> None:
    waiting = run("roll_back_application", "--set", "application=payments-api", "--set", "reason=wrong tag")
    rejected = run("chat", "--task", _task_of(waiting), "--reject", "not today")
    assert rejected.returncode == 1
    assert "not today" in rejected.stdout


def test_what_cannot_be_started(run: Run) -> None:
    unknown = run("create_repo")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "did you mean 'create_github_repo'" in unknown.stderr
    off = run("create_github_repo", ENABLE_GITHUB="false")
    assert off.returncode == 1
    assert "cannot be started: the agent github is off" in off.stderr


async def test_at_a_supervisor_that_runs(run: Run, tmp_path: Path) -> None:
    environ = {"DATA_DIR": str(tmp_path), "OFFLINE_MODEL_DELAY": "0"}
    async with CommandLine(["serve", "--port", "0"], environ) as supervisor:
        url = ["--url", supervisor.url]
        done = await asyncio.to_thread(run, "create_github_repo", "--set", "repository=far", "--json", *url)
        unknown = await asyncio.to_thread(run, "weather report", "--set", "a=b", *url)
    assert done.returncode == 0, done.stderr
    assert all(json.loads(line) for line in done.stdout.splitlines())
    assert "acme/far" in done.stdout
    assert unknown.returncode == 1
    assert "showed no form, so the values were not used" in unknown.stderr
