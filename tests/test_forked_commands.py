"""A command that is a fork behaves as one that is started with all its imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked_commands import COMMAND, is_possible, status_field

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(not is_possible(), reason="commands are not forked on this system, or not in this run"),
]
INSTALLED = [str(Path(sys.executable).with_name("platform-engineer"))]


def begin(command: list[str], tmp_path: Path, environ: dict[str, str]) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environ, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(
    ("arguments", "typed"),
    [
        (["agents", "list"], ""),
        (["agents"], ""),
        (["tasks", "list"], ""),
        (["feedback", "list"], ""),
        (["replay", "-", "--instant"], "Käse\n"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_output_and_exit_code(arguments: list[str], typed: str, tmp_path: Path, environ: dict[str, str]) -> None:
    environ["WEATHER_AGENT_URL"] = "http://weather.test"
    (tmp_path / ".env").write_text("JIRA_AGENT_URL=http://jira.test\n", encoding="utf-8")
    seen = []
    for command in (COMMAND, INSTALLED):
        with begin([*command, *arguments], tmp_path, environ) as process:
            stdout, stderr = process.communicate(typed, timeout=100)
        seen.append((process.returncode, stdout, stderr))
    assert seen[0] == seen[1]
    assert seen[0][1] + seen[0][2]


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [(COMMAND, signal.SIGINT, 0), (COMMAND, signal.SIGKILL, -signal.SIGKILL), (INSTALLED, signal.SIGTERM, 0)],
    ids=["interrupted", "killed", "installed"],
)
def test_it_is_a_child_that_gets_signals(
    command: list[str], number: int, code: int, tmp_path: Path, environ: dict[str, str]
) -> None:
    before = os.umask(0o027)
    try:
        process = begin([*command, "agent", "netutils", "--port", "0"], tmp_path, environ)
    finally:
        os.umask(before)
    with process:
        assert process.stdout is not None
        assert "is ready at" in process.stdout.readline()
        assert status_field(process.pid, "PPid") == str(os.getpid())
        assert status_field(process.pid, "Umask") == "0027"
        process.send_signal(number)
        assert process.wait(60) == code


def test_an_orphan_is_no_child_of_pytest(tmp_path: Path, environ: dict[str, str]) -> None:
    """pytest would have to wait for it, or it stays a zombie that looks alive to tests."""
    with begin([*COMMAND, "--version"], tmp_path, environ) as process:
        process.communicate()
    script = "sleep 60 > /dev/null 2>&1 & echo $!"
    orphan = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    parent = status_field(orphan, "PPid")
    os.kill(int(orphan), signal.SIGKILL)
    assert parent != str(os.getpid())
