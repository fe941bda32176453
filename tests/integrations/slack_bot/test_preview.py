"""`slack --preview`: a recording, played by the bot's own reducer, as people would see it in Slack."""

from __future__ import annotations

import io
import itertools
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from rich.console import Console

from ai_platform_engineering.cli import main
from ai_platform_engineering.events import (
    Canceled,
    Event,
    Failed,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    TextDelta,
)
from ai_platform_engineering.events_json import Asked, Line, encode_line
from ai_platform_engineering.integrations.slack_bot.preview.drawing import play, show
from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from ai_platform_engineering.integrations.slack_bot.preview.player import BOT, NAMES, PERSON, moments_of
from ai_platform_engineering.integrations.slack_bot.preview.workspace import Moment
from ai_platform_engineering.recordings import CUT_SHORT, read_recording
from tests.integrations.slack_bot.standin.plain import plain_message
from tests.recordings.record import HERE, tasks
from tests.terminal.runs import RUN

RECORDINGS = sorted(HERE.glob("*.jsonl"))
FORM = Form(
    "form-1",
    "Create GitHub Repo",
    (FormField("name"), FormField("visibility", "select", field_values=("public", "private"))),
    agent="github",
)


def seen(*items: Event | Asked | tuple[float, Event | Asked]) -> list[Moment]:
    lines = [Line(item[1], item[0]) if isinstance(item, tuple) else Line(item) for item in items]
    return moments_of(lines)


def said_by(author: str, moment: Moment) -> list[SlackMessage]:
    return [message for message in moment.transcript.messages if message.author == author]


def final(text: str, message_id: str = "m1") -> FinalResult:
    return FinalResult(text, message_id)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_every_answer_is_there_once_and_every_agent_is_named(recording: Path) -> None:
    moments = moments_of(read_recording(str(recording)))
    last = moments[-1].transcript
    texts = [message.text for message in said_by(BOT, moments[-1])]
    for run in tasks(recording.read_text()):
        answers = [event.text for event in run if isinstance(event, FinalResult)]
        assert [sum(answer.strip() in text for text in texts) for answer in answers] == [1]
    titles = " ".join(card.title + card.details for message in last.messages for card in message.cards)
    assert all(card.status != "in_progress" for message in last.messages for card in message.cards)
    for name in ("argocd", "jira", "github"):
        if f'"agent_started", "agent": "{name}"' in recording.read_text():
            assert f"Calling Agent {name.capitalize()}..." in titles
    assert not any(message.streaming for message in last.messages)
    assert last.status == ""


def test_moments_only_go_on_and_none_is_like_the_one_before() -> None:
    moments = moments_of(read_recording(str(HERE / "two-agents.jsonl")))
    times = [moment.at for moment in moments]
    assert times == sorted(times)
    assert times[0] == 0.0
    assert all(before.transcript != after.transcript for before, after in itertools.pairwise(moments))
    statuses = [card.status for moment in moments for message in moment.transcript.messages for card in message.cards]
    assert {"in_progress", "complete"} <= set(statuses)


def test_what_takes_long_is_seen_while_it_is_written() -> None:
    words = [(float(number), TextDelta("supervisor", "m1", f"word{number} ")) for number in range(600)]
    answer = "".join(delta.text for _, delta in words)
    moments = seen(Asked("tell me a story"), *words, (600.0, final(answer)))
    assert moments[-1].at >= 600.0
    shown = [sum(len(message.text) for message in said_by(BOT, moment)) for moment in moments]
    assert len(set(shown)) > 300
    assert not any(message.expired for message in moments[-1].transcript.messages)
    whole = "".join(message.text for message in said_by(BOT, moments[-1]))
    assert whole.split() == answer.split()


def test_a_form_is_shown_answered_and_below_it_the_run_goes_on() -> None:
    moments = seen(
        Asked("create a repo"),
        TextDelta("supervisor", "m0", "I need to know more."),
        InputRequired((FORM,)),
        Asked("name: demo\nvisibility: private"),
        TextDelta("supervisor", "m1", "Done."),
        final("Done."),
    )
    labels = {plain_message(message, NAMES.__getitem__) for moment in moments for message in said_by(BOT, moment)}
    assert any("[Submit]" in label for label in labels), labels
    said, form, answer = (plain_message(message) for message in said_by(BOT, moments[-1]))
    assert "I need to know more." in said
    assert "[Submit]" not in form
    assert f"Answered by <@{PERSON.id}>: name: demo, visibility: private" in form
    assert "Done." in answer
    assert len(said_by(PERSON.id, moments[-1])) == 1


def test_an_answer_that_was_not_recorded_closes_the_form_too() -> None:
    moments = seen(
        Asked("create a repo"), InputRequired((FORM,)), TextDelta("supervisor", "m1", "Done."), final("Done.")
    )
    form, answer = (plain_message(message) for message in said_by(BOT, moments[-1]))
    assert f"Answered by <@{PERSON.id}>" in form
    assert "Done." in answer


def test_a_form_that_nobody_answered_stays_open() -> None:
    moments = seen(Asked("create a repo"), InputRequired((FORM,)))
    (form,) = said_by(BOT, moments[-1])
    assert "[Submit]" in plain_message(form)


def test_a_failure_can_be_tried_again_and_a_stop_is_told() -> None:
    (failed,) = said_by(BOT, seen(Asked("x"), Failed("timeout", "It took too long."))[-1])
    assert "It took too long." in failed.text
    assert "[Try again]" in plain_message(failed)
    (stopped,) = said_by(BOT, seen(Asked("x"), Canceled())[-1])
    assert "Stopped" in stopped.text


def test_a_recording_without_its_question_is_played_all_the_same() -> None:
    moments = seen(TextDelta("supervisor", "m1", "Hello."), final("Hello."))
    question, answer = moments[-1].transcript.messages
    assert "not recorded" in question.text
    assert answer.text.strip() == "Hello."


def test_what_people_write_calls_nobody() -> None:
    question = seen(Asked("tell <!channel> & <@U1>"), final("No."))[-1].transcript.messages[0]
    assert question.text == "tell &lt;!channel&gt; &amp; &lt;@U1&gt;"


class TestCommand:
    @pytest.fixture
    def recording(self, tmp_path: Path) -> str:
        path = tmp_path / "run.jsonl"
        path.write_text("".join(f"{encode_line(item)}\n" for item in (Asked("which apps?"), *RUN)))
        return str(path)

    def test_a_pipe_gets_lines(self, recording: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["slack", "--preview", recording]) == 0
        shown = capsys.readouterr()
        assert shown.out.startswith("You  09:41\n  which apps?\n\nPlatform Engineer  09:41\n")
        assert "\x1b" not in shown.out
        assert shown.err == ""

    def test_a_page_is_written(self, recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        out = tmp_path / "thread.html"
        assert main(["slack", "--preview", recording, "--html", str(out)]) == 0
        assert capsys.readouterr().out.startswith(f"{out} shows ")
        soup = BeautifulSoup(out.read_text(encoding="utf-8"), "html.parser")
        assert "which apps?" in soup.select("#thread")[0].get_text()

    def test_standard_input_is_a_recording_too(
        self, recording: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(recording).read_bytes())))
        assert main(["slack", "--preview", "-"]) == 0
        assert "which apps?" in capsys.readouterr().out

    def test_a_recording_that_was_cut_short_says_so(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        path = tmp_path / "cut.jsonl"
        path.write_text("\n".join(map(encode_line, RUN[:12])))
        assert main(["slack", "--preview", str(path)]) == 0
        assert capsys.readouterr().err == f"{CUT_SHORT}\n"

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (["--preview", "nowhere.jsonl"], "nowhere.jsonl cannot be read: No such file or directory."),
            (["--html", "x.html"], "--html, --speed and --instant are for --preview."),
            (["--preview", "{recording}", "--html", "/nowhere/x.html"], "/nowhere/x.html cannot be written: "),
            (["--preview", "{questions}"], "has questions but no events; there is nothing to show."),
        ],
    )
    def test_what_cannot_be_done_is_said(
        self, recording: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str
    ) -> None:
        questions = tmp_path / "questions.jsonl"
        questions.write_text(encode_line(Asked("which apps?")))
        filled = [word.format(recording=recording, questions=questions) for word in arguments]
        assert main(["slack", *filled]) == 2
        shown = capsys.readouterr()
        assert sentence in shown.err
        assert shown.out == ""

    def test_the_libraries_of_slack_are_not_needed(self, recording: str, tmp_path: Path) -> None:
        missing = "import sys; sys.modules.update(dict.fromkeys(['slack_sdk', 'slack_bolt', 'aiohttp']))"
        program = f"{missing}; from ai_platform_engineering.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", program, "slack", "--preview", recording]
        shown = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False, encoding="utf-8")
        assert shown.returncode == 0, shown.stderr
        assert "which apps?" in shown.stdout

    def test_a_terminal_sees_it_grow(self, recording: str, tmp_path: Path) -> None:
        ours, theirs = pty.openpty()
        command = [
            sys.executable,
            "-m",
            "ai_platform_engineering.cli",
            "slack",
            "--preview",
            recording,
            "--speed",
            "50",
        ]
        environ = {**os.environ, "TERM": "xterm-256color", "DATA_DIR": str(tmp_path)}
        with subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ, cwd=tmp_path
        ) as process:
            os.close(theirs)
            shown = b""
            while piece := _read(ours):
                shown += piece
        os.close(ours)
        assert process.returncode == 0
        # Drawn more than once while it plays, and once more to stay.
        assert shown.count(b"which apps?") > 3


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""


def test_a_thread_that_is_taller_than_the_terminal_is_seen_at_its_end() -> None:
    answer = "\n".join(f"- line {number}" for number in range(100))
    moments = seen(Asked("list"), final(answer))
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=60, height=10, color_system=None)
    play(moments, console, NAMES, BOT, speed=1000.0)
    assert "line 99" in screen.getvalue()
    assert "line 1\n" not in screen.getvalue()
    show(moments[-1].transcript, console, NAMES, BOT)
    assert "line 1\n" in screen.getvalue()


def test_no_text_moves_the_cursor() -> None:
    hostile = "a\x1b[2J\x1b]0;title\x07b\u202ec"
    form = Form("f", hostile, (FormField(hostile),), hostile, agent=hostile)
    transcript = seen(Asked(hostile), TextDelta("supervisor", "m", hostile), InputRequired((form,)))[-1].transcript
    screen = io.StringIO()
    show(transcript, Console(file=screen, width=100, color_system=None), NAMES, BOT)
    assert not any(sign in screen.getvalue() for sign in "\x1b\x07\u202e")
