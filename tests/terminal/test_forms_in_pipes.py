"""Forms without a person at the keyboard: they are printed, and answered with options."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Protocol

import pytest

from ai_platform_engineering.cli import build_parser, main
from ai_platform_engineering.events import FinalResult, InputRequired
from ai_platform_engineering.events_json import Asked, decode_line
from ai_platform_engineering.terminal.background import BackgroundLoop
from ai_platform_engineering.terminal.conversation import RECONNECTING
from ai_platform_engineering.text.form_text import BY_MESSAGE
from tests.terminal.asking import REPO
from tests.terminal.conftest import AskingSupervisor
from tests.terminal.proxy import tunnel_to
from tests.terminal.test_chat import CompletedChat


class Run(Protocol):
    def __call__(self, *arguments: str, typed: str = "") -> CompletedChat: ...


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process: none of this needs one of its own."""
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, typed: str = "") -> CompletedChat:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
        code = main(arguments)
        shown = capsys.readouterr()
        return CompletedChat(code, shown.out, shown.err)

    return run


def task_of(ended: CompletedChat) -> str:
    found = re.search(r"--task (\S+)", ended.stderr)
    assert found is not None, ended.stderr
    return found[1]


def test_a_question_that_needs_input_says_how_to_give_it_and_exits_with_three(
    run: Run, asking_supervisor: AskingSupervisor
) -> None:
    url = asking_supervisor.url
    ended = run("chat", "--url", url, "create a repo")
    assert (ended.code, ended.stdout) == (3, "")
    lines = ended.stderr.splitlines()
    assert lines[lines.index("Agent Github: waiting") + 1] == "Input needed (Github): Create GitHub Repo"
    assert lines[-2:] == [
        "Answer it with:",
        f"  platform-engineer chat --url {url} --task {task_of(ended)} --answer name=...",
    ]
    again = run("chat", "--url", url, "--task", task_of(ended))
    assert (again.code, again.stdout) == (3, "")
    assert again.stderr.splitlines()[0] == "Input needed (Github): Create GitHub Repo"


def test_options_answer_a_form_and_the_run_goes_on(run: Run, asking_supervisor: AskingSupervisor) -> None:
    url, answers = asking_supervisor.url, asking_supervisor.asker.answers
    task = task_of(run("chat", "--url", url, "create a repo"))
    bad = run("chat", "--url", url, "--task", task, "--answer", "name=de", "--answer", "visibility=1")
    assert (bad.code, bad.stdout) == (3, "")
    assert "required, now de)" in bad.stderr
    assert "`name` takes text of at least 3 characters" in bad.stderr

    good = ["--answer", "name=demo=1", "--answer", "visibility=public"]
    ended = run("chat", "--url", url, "--task", task, *good)
    assert ended.code == 0
    assert ended.stdout.startswith("Done with ")
    assert ended.stderr.splitlines() == ["  Github: do_it: ok", "Agent Github: ok", "  [x] Github: Do as asked"]
    assert answers[-1] == {"form_id": "form-repo", "values": {"name": "demo=1", "visibility": "public"}}

    late = run("chat", "--url", url, "--task", task, *good)
    assert (late.code, late.stdout) == (1, "")
    assert late.stderr == f"platform-engineer: Task {task} is completed: it does not wait for an answer.\n"


@pytest.mark.parametrize(
    ("options", "decision"),
    [
        (["--approve"], {"type": "approve"}),
        (["--reject", "it is in use"], {"type": "reject", "message": "it is in use"}),
        (["--approve", "--answer", "cascade=false"], {"type": "edit", "args": {"cascade": False}}),
    ],
)
def test_options_decide_what_is_to_be_approved(
    run: Run, asking_supervisor: AskingSupervisor, options: list[str], decision: dict[str, object]
) -> None:
    url = asking_supervisor.url
    asked = run("chat", "--url", url, "delete the app")
    assert asked.code == 3
    assert asked.stderr.splitlines()[-1].endswith(" --reject REASON")
    ended = run("chat", "--url", url, "--task", task_of(asked), *options)
    assert ended.code == 0
    assert asking_supervisor.asker.answers == [{"form_id": "form-delete", "decisions": [decision]}]


def test_several_forms_are_answered_in_any_order(run: Run, asking_supervisor: AskingSupervisor) -> None:
    url = asking_supervisor.url
    asked = run("chat", "--url", url, "both")
    task = task_of(asked)
    assert asked.stderr.count("--form ") == 3
    first = run("chat", "--url", url, "--task", task, "--approve")
    assert first.code == 3
    assert "Create GitHub Repo" in first.stderr
    assert "delete_application" not in first.stderr
    last = run("chat", "--url", url, "--task", task, "--reject", "enough")
    assert last.code == 0
    assert last.stdout == "Nothing was done.\n"
    assert [answer["form_id"] for answer in asking_supervisor.asker.answers] == ["form-delete", "form-repo"]


def test_json_prints_the_form_and_the_conversation_is_enough_to_answer(
    run: Run, asking_supervisor: AskingSupervisor
) -> None:
    url = asking_supervisor.url
    ended = run("chat", "--url", url, "--json", "create a repo")
    assert ended.code == 3
    first, *_, last = [decode_line(line).item for line in ended.stdout.splitlines()]
    assert isinstance(first, Asked)
    assert last == InputRequired((REPO,))
    options = ["--context", first.context_id, "--json", "--answer", "name=demo"]
    answered = run("chat", "--url", url, *options)
    asked, *_, final = [decode_line(line).item for line in answered.stdout.splitlines()]
    assert answered.code == 0
    assert asked == Asked("name: demo", first.context_id)
    assert isinstance(final, FinalResult)

    replayed = run("replay", "-", "--instant", typed=ended.stdout + answered.stdout)
    assert replayed.stdout == final.text + "\n"
    lines = replayed.stderr.splitlines()
    assert lines.index("Input needed (Github): Create GitHub Repo") < lines.index("Agent Github: ok")

    nothing = run("chat", "--url", url, *options)
    assert nothing.code == 1
    assert f"Nothing in the conversation {first.context_id} waits for an answer." in nothing.stderr


def test_questions_from_a_pipe_answer_with_the_next_line(run: Run, asking_supervisor: AskingSupervisor) -> None:
    """This supervisor understands no texts: it asks again."""
    ended = run("chat", "--url", asking_supervisor.url, typed="create a repo\nname: demo\n/answer\n")
    assert ended.code == 3
    assert ended.stderr.count("Input needed (Github): Create GitHub Repo") == 2
    assert ended.stderr.count("Agent Github: waiting") == 1
    assert ended.stderr.count(BY_MESSAGE) == 2 + 1
    assert "--task" in ended.stderr.splitlines()[-1]


def test_an_answer_whose_reply_is_lost_is_not_given_twice_and_nothing_is_repeated(
    run: Run, asking_supervisor: AskingSupervisor
) -> None:
    task = task_of(run("chat", "--url", asking_supervisor.url, "create a repo"))
    with BackgroundLoop() as background:
        tunnel = background.enter_context(tunnel_to(asking_supervisor.url))
        tunnel.cut = lambda sent: b"text/event-stream" in sent and tunnel.cuts < 1
        ended = run("chat", "--url", tunnel.url, "--task", task, "--answer", "name=demo")
    assert (ended.code, tunnel.cuts) == (0, 1)
    assert ended.stderr.splitlines() == [
        RECONNECTING,
        "  Github: do_it: ok",
        "Agent Github: ok",
        "  [x] Github: Do as asked",
    ]
    assert len(asking_supervisor.asker.answers) == 1


def test_a_task_that_is_not_there(run: Run, asking_supervisor: AskingSupervisor) -> None:
    ended = run("chat", "--url", asking_supervisor.url, "--task", "nope", "--approve")
    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr == f"platform-engineer: There is no task nope at {asking_supervisor.url}.\n"


def test_an_answer_that_fits_no_form_is_a_wrong_argument(run: Run, asking_supervisor: AskingSupervisor) -> None:
    url = asking_supervisor.url
    task = task_of(run("chat", "--url", url, "both approvals"))
    ended = run("chat", "--url", url, "--task", task, "--approve")
    assert (ended.code, ended.stdout) == (2, "")
    assert "Choose one with --form" in ended.stderr
    assert asking_supervisor.asker.answers == []
    ended = run("chat", "--url", url, "--task", task, "--form", "form-other", "--approve")
    assert ended.code == 3


@pytest.mark.parametrize(
    "argv", [["--answer", "name"], ["--answer", "=x"], ["--approve", "--reject", "x"]], ids=" ".join
)
def test_wrong_arguments(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        build_parser().parse_args(["chat", "--task", "t", *argv])
    assert caught.value.code == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["--approve"], "Which form is answered?"),
        (["--task", "t", "--approve", "a question"], "cannot be combined"),
        (["--task", "t", "--form", "f"], "--form needs an answer"),
        (["--task", "t", "--reject", "x", "--answer", "a=b"], "--reject and --answer cannot be combined"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_arguments_that_do_not_go_together(argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", *argv]) == 2
    assert sentence in capsys.readouterr().err
