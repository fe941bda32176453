from __future__ import annotations

import io
import time
from pathlib import Path

import pytest

from ai_platform_engineering.cli import main
from ai_platform_engineering.events import Event, InputRequired
from ai_platform_engineering.events_json import Asked, Line, encode_line
from ai_platform_engineering.recordings import CUT_SHORT, runs_of
from ai_platform_engineering.terminal.replay import Recording
from tests.terminal.asking import REPO
from tests.terminal.runs import ANSWER, BEGINNING, RUN, answers, progress, view_of


def recording(tmp_path: Path, events: list[Event], seconds: float = 0.0) -> str:
    path = tmp_path / "run.jsonl"
    pause = seconds / len(events)
    path.write_text("".join(f"{encode_line(event, number * pause)}\n" for number, event in enumerate(events)))
    return str(path)


def test_a_recording_shows_what_the_run_showed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--instant", recording(tmp_path, RUN, 60)]) == 0
    shown = capsys.readouterr()
    assert shown.out == ANSWER
    assert shown.err.splitlines() == "\n".join(progress(view_of(RUN))).splitlines()


def test_times_are_kept_and_can_be_shortened(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    assert main(["replay", "--speed", "10", recording(tmp_path, RUN, 5)]) == 0
    assert 0.4 < time.monotonic() - begun < 5 * (len(RUN) - 1)


def test_a_recording_may_have_no_times() -> None:
    source = Recording([Line(event) for event in RUN], speed=1.0)
    assert [source.next(0) for _ in RUN] == RUN
    with pytest.raises(EOFError):
        source.next(0)


def test_a_recording_that_was_cut_short_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--instant", recording(tmp_path, RUN[:12])]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[-1] == CUT_SHORT


def test_a_recording_may_hold_a_whole_conversation(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    items: list[Event | Asked] = [Asked("first"), *RUN, Asked("second"), *RUN]
    runs = list(runs_of([Line(item) for item in items]))
    assert [asked.question for asked, _ in runs if asked] == ["first", "second"]
    path = tmp_path / "two.jsonl"
    path.write_text("\n".join(encode_line(item) for item in items))
    assert main(["replay", str(path)]) == 0
    assert capsys.readouterr().out == 2 * f"{answers(view_of(RUN))[0]}\n"


def test_a_recording_shows_forms_and_goes_on_after_the_answer(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    rest = RUN[len(BEGINNING) :]
    items: list[Event | Asked] = [Asked("q"), *BEGINNING, InputRequired((REPO,)), Asked("name: demo"), *rest]
    path = tmp_path / "form.jsonl"
    path.write_text("\n".join(encode_line(item) for item in items))
    assert main(["replay", "--instant", str(path)]) == 0
    shown = capsys.readouterr()
    progress_lines = shown.err.splitlines()
    assert "Input needed (Github): Create GitHub Repo" in progress_lines
    assert progress_lines.index("Agent Jira: waiting") < progress_lines.index("Agent Jira: ok")
    assert progress_lines.count("Plan: Compare issues") == 1
    assert shown.out == ANSWER


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "is empty"),
        (b'{"event": "canceled"}\n{"event": "nonsense"}\n', "line 2: The value of `event`, 'nonsense'"),
        (b"\xff\xfe", "line 1: This is not JSON"),
    ],
)
def test_what_is_no_recording_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, sentence: str
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(content)
    assert main(["replay", str(path)]) == 2
    assert sentence in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path / "none.jsonl")]) == 2
    assert "none.jsonl cannot be read: No such file or directory" in capsys.readouterr().err


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    data = "\n".join(map(encode_line, RUN)).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert main(["replay", "-"]) == 0
    assert capsys.readouterr().out == ANSWER
