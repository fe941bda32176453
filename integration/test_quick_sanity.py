"""The runner of `make quick-sanity` fails when something is missing, and leaves nothing running."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from integration.quick_sanity import AGENTS, ROOT, QuickSanityError, check_placement, engine_available, main, program

ROW = {"enabled": True, "where": "remote", "why": "named", "address": "http://a", "reachable": True, "tools": ["t"]}
GOOD: list[dict[str, Any]] = [{"name": name, "problem": None, **ROW} for name in AGENTS]


def test_two_agents_outside_are_what_is_asked_for() -> None:
    check_placement({"agents": GOOD})


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (GOOD[:1], "knows no agent named netutils"),
        ([GOOD[0], GOOD[1] | {"where": "in-process", "why": "needs no settings"}], "needs no settings"),
        ([GOOD[0] | {"enabled": False, "why": "ENABLE_GITHUB=false"}, GOOD[1]], "ENABLE_GITHUB=false"),
        ([GOOD[0] | {"reachable": False, "problem": "connection refused"}, GOOD[1]], "connection refused"),
        ([GOOD[0], GOOD[1] | {"tools": []}], "no tools"),
    ],
    ids=["missing", "inside", "off", "unreachable", "without tools"],
)
def test_anything_else_is_a_failure_that_says_why(rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(QuickSanityError, match=said):
        check_placement({"agents": rows})


def test_a_program_that_does_not_start_is_a_failure_that_shows_what_it_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        pytest.raises(QuickSanityError, match="agent missing did not start"),
        program(["agent", "missing"], tmp_path, {"DATA_DIR": str(tmp_path)}) as running,
    ):
        running.address()
    assert "There is no agent named 'missing'" in capsys.readouterr().err
    assert running.process.returncode == 2


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `docker` that finds its engine, cannot bring anything up, and records its arguments."""
    asked = tmp_path / "asked"
    docker = tmp_path / "docker"
    docker.write_text(f'#!/bin/sh\necho "$*" >> {asked}\ncase "$*" in *" up "*) exit 1;; esac\n', encoding="utf-8")
    docker.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return asked


def test_containers_that_do_not_come_up_are_taken_down(engine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert main([]) == 1
    finally:
        signal.signal(signal.SIGTERM, before)
    assert "docker compose up ended with 1" in capsys.readouterr().err
    asked = engine.read_text(encoding="utf-8").splitlines()
    assert asked[:2] == ["info", "compose version"]
    assert re.findall(r" (up|logs|down) ", "\n".join(asked)) == ["up", "logs", "down"]
    assert "--volumes" in asked[-1]


def test_without_an_engine_there_are_no_containers(engine: Path) -> None:
    assert engine_available()
    (engine.parent / "docker").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    assert not engine_available()


def test_a_stopped_run_leaves_no_process_behind(tmp_path: Path) -> None:
    """Every process of the runner carries this directory in its environment, which says whose child it is."""
    command = [sys.executable, "-m", "integration.quick_sanity", "--with", "processes"]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, "TMPDIR": str(tmp_path)}) as runner:
        deadline = time.monotonic() + 60
        while len(started := processes_of(tmp_path)) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(60) == 143
    assert len(started) >= 3, "the runner and two agents"
    assert processes_of(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_a_stop_while_a_program_starts_waits_until_it_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    class StoppedAtBirth(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self)
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(subprocess, "Popen", StoppedAtBirth)
    try:
        with pytest.raises(SystemExit, match="143"):
            main(["--with", "processes"])
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [process.poll() is not None for process in started] == [True]


def processes_of(directory: Path) -> list[str]:
    variable = f"TMPDIR={directory}\0".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if variable in (process / "environ").read_bytes():
                found.append(process.name)
        except OSError:  # it ended, or is not ours
            continue
    return found
