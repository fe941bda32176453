"""`platform-engineer tasks`, over a file that a log has written."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from ai_platform_engineering.cli import main
from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Event,
    FinalResult,
    Form,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    TextDelta,
)
from ai_platform_engineering.events_json import Asked, decode_line
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from tests.storage.event_log.test_log_contract import Writer, deltas, message, submitted

ANSWER: list[Event] = [
    PlanUpdated((PlanStep("s1", "Look", "in_progress", 0, "argocd"),), "Version"),
    AgentStarted("argocd", "c1", plan_step_id="s1"),
    AgentFinished("argocd", "c1", True, plan_step_id="s1"),
    PlanUpdated((PlanStep("s1", "Look", "completed", 0, "argocd"),), "Version"),
    TextDelta("supervisor", "m1", "It is "),
    TextDelta("supervisor", "m1", "v3.1.8."),
    MessageEnded("supervisor", "m1"),
    FinalResult("It is v3.1.8.", "m1"),
]
QUESTION = InputRequired((Form("form-1", "Which app?"),))


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def kept(data_dir: Path) -> Path:
    async def write() -> None:
        async with SqliteEventLog(data_dir / "tasks.db").opened() as log:
            await (await Writer(log, "task-one", "c1").begin()).write(*ANSWER)
            asked = await Writer(log, "task-two", "c2").begin()
            await asked.write(QUESTION)
            await log.add_message("task-two", message("q2"))
            await asked.write(*ANSWER)
            await (await Writer(log, "running", "c3").begin()).write(*deltas(1))

    asyncio.run(write())
    return data_dir


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["tasks", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_hostile_text_stays_in_its_row(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    forged = "x\n\x1b[2J\x1b]52;c;eA==\x07task-two  2026-01-01\u202e"
    asked = submitted("task\x1b[31m-one", "c1")
    asked.history[0].parts[0].text = forged
    step = PlanUpdated((PlanStep("s1", forged, "completed", 0, forged),), forged)
    call = [AgentStarted(forged, "c1"), AgentFinished(forged, "c1", ok=False, reason=forged)]

    async def write() -> None:
        async with SqliteEventLog(data_dir / "tasks.db").opened() as log:
            writer = Writer(log, asked.id, "c1")
            await log.create(asked)
            await writer.write(step, *call, TextDelta("supervisor", "m1", forged), FinalResult(forged, "m1"))

    asyncio.run(write())
    (row,) = run(capsys, "list")[1].splitlines()
    assert row.startswith("task[31m-one  ")
    assert row.endswith("  x [2J]52;c;eA==task-two 2026-01-01")
    for arguments in (["list"], ["list", "--json"], ["show", asked.id], ["show", "no\x1b[2J"]):
        _, output, error = run(capsys, *arguments)
        assert not set("\x1b\x07\u202e") & set(output + error)


def test_listing(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, output, _ = run(capsys, "list")
    assert code == 0
    states = {line.split()[0]: line.split()[3] for line in output.splitlines()}
    assert states == {"running": "working", "task-two": "completed", "task-one": "completed"}
    assert all(line.endswith("  hello") for line in output.splitlines())
    assert run(capsys, "list", "--limit", "1")[1] == output.splitlines(keepends=True)[0]
    assert run(capsys, "list", "--state", "failed")[1] == "There are no tasks in the state failed.\n"

    _, output, _ = run(capsys, "list", "--json", "--state", "working")
    (row,) = map(json.loads, output.splitlines())
    assert row["changed"] >= row["created"]
    assert {key: row[key] for key in ("id", "context_id", "state", "events", "question")} == {
        "id": "running",
        "context_id": "c3",
        "state": "working",
        "events": 2,
        "question": "hello",
    }


def test_showing(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, output, _ = run(capsys, "show", "task-o")
    assert code == 0
    lines = output.splitlines()
    assert lines[0] == "> hello"
    assert "Calling Agent Argocd..." in lines
    assert lines[-1] == "It is v3.1.8."
    assert output.count("v3.1.8") == 1
    assert run(capsys, "show", "task-two")[1].count("> hello") == 2

    task = json.loads(run(capsys, "show", "task-one", "--json")[1])
    assert task["id"] == "task-one"
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"


def test_an_export_has_every_event_in_order_and_replays(
    kept: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, output, _ = run(capsys, "export", "task-one")
    assert code == 0
    lines = [decode_line(line) for line in output.splitlines()]
    assert [line.item for line in lines] == [Asked("hello", "c1"), *ANSWER]
    times = [line.at for line in lines]
    assert times == sorted(times)
    assert times[0] == 0

    file = tmp_path / "run.jsonl"
    assert run(capsys, "export", "task-two", "-o", str(file)) == (0, "", "")
    items = [decode_line(line).item for line in file.read_text().splitlines()]
    assert items == [Asked("hello", "c2"), QUESTION, Asked("hello", "c2"), *ANSWER]
    assert main(["replay", str(file), "--instant"]) == 0
    assert capsys.readouterr().out == "It is v3.1.8.\n"


def test_a_file_that_is_being_written_can_be_read(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def read_while_open() -> str:
        async with SqliteEventLog(kept / "tasks.db").opened() as log:
            writer = Writer(log, "new")
            await writer.begin()
            await writer.write(*ANSWER[:6])
            await asyncio.to_thread(main, ["tasks", "export", "new"])
            return capsys.readouterr().out

    items = [decode_line(line).item for line in asyncio.run(read_while_open()).splitlines()]
    assert items[1:] == ANSWER[:6]


@pytest.mark.parametrize("action", [["list"], ["show", "x"], ["export", "x"]])
def test_where_nothing_was_kept(data_dir: Path, capsys: pytest.CaptureFixture[str], action: list[str]) -> None:
    code, output, error = run(capsys, *action)
    assert (code, output) == (2, "")
    assert str(data_dir / "tasks.db") in error
    assert "DATA_DIR" in error
    assert not data_dir.exists()


def test_what_cannot_be_found_or_written(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("show", "export"):
        code, output, error = run(capsys, action, "nope")
        assert (code, output) == (1, "")
        assert "no task 'nope'" in error
        code, _, error = run(capsys, action, "task-")
        assert code == 1
        assert "More than one task" in error
    code, _, error = run(capsys, "list", "--state", "done")
    assert code == 2
    assert "input-required" in error
    code, _, error = run(capsys, "export", "running", "-o", str(kept / "no" / "file"))
    assert code == 2
    assert "cannot be written" in error
    assert run(capsys, "list", "--agent", "argocd")[0] == 2


@pytest.mark.parametrize("limit", ["0", "-1", "many", "9" * 30])
def test_limits_that_are_none(data_dir: Path, limit: str) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["tasks", "list", "--limit", limit])
    assert refused.value.code == 2


def test_a_second_supervisor_on_the_same_directory_is_refused(
    data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def serve_twice() -> int:
        async with SqliteEventLog(data_dir / "tasks.db").opened():
            return await asyncio.to_thread(main, ["serve", "--port", "0"])

    assert asyncio.run(serve_twice()) == 2
    error = capsys.readouterr().err
    assert f"{data_dir / 'tasks.db'} is being written by another process" in error
    assert "Traceback" not in error
