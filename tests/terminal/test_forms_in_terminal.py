"""Forms and approvals as a person answers them, in a real terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai_platform_engineering.terminal.chat import NEW_CONVERSATION, STAYS_OPEN
from ai_platform_engineering.terminal.form_dialogue import DISMISSED
from tests.terminal.conftest import AskingSupervisor
from tests.terminal.tmux import Terminal

CHOICE = "approve / edit / reject / always ›"


def begin(terminal: Terminal, supervisor: AskingSupervisor, question: str, **environ: str) -> None:
    terminal.run("chat", "--url", supervisor.url, width=100, height=50, **environ)
    terminal.wait_for("›")
    terminal.type(question)


def leave(terminal: Terminal) -> None:
    terminal.wait_until(lambda shown: shown.endswith("\n›"), "the prompt")
    terminal.press("C-d")
    terminal.wait_for("[exit 0]")


def test_a_form_is_filled_in_and_the_run_goes_on(terminal: Terminal, asking_supervisor: AskingSupervisor) -> None:
    begin(terminal, asking_supervisor, "create a repo")
    terminal.wait_for("1/3 name")
    terminal.type("de")
    terminal.wait_for("`name` takes text of at least 3 characters")
    terminal.type("demo")
    terminal.wait_for("[private] ›")
    terminal.type("1")
    terminal.wait_for("3/3 reviewers")
    terminal.type("2")
    shown = terminal.wait_for("Done with")
    terminal.wait_until(lambda shown: shown.endswith("\n›"), "the prompt")
    assert asking_supervisor.asker.answers == [
        {"form_id": "form-repo", "values": {"name": "demo", "visibility": "public", "reviewers": 2}}
    ]
    places = [
        shown.index(part)
        for part in (
            "I'll see to it.",
            "○ Github: Do as asked",
            "? Agent Github",
            "✓ look_around",
            "Input needed (Github): Create GitHub Repo",
            "✓ Agent Github",
            "✓ do_it",
            "✓ Github: Do as asked",
            "Done with",
        )
    ]
    assert places == sorted(places)
    for once in ("I'll see to it.", "✓ look_around", "Input needed", "✓ Agent Github"):
        assert shown.count(once) == 1, once

    terminal.press("Up")
    terminal.wait_for("› create a repo", count=2)
    terminal.press("C-u")
    leave(terminal)


def test_a_form_is_dismissed(terminal: Terminal, asking_supervisor: AskingSupervisor) -> None:
    begin(terminal, asking_supervisor, "create a repo")
    terminal.wait_for("1/3 name")
    terminal.press("C-d")
    shown = terminal.wait_for("Nothing was done.")
    assert DISMISSED in shown
    assert asking_supervisor.asker.answers == [{"form_id": "form-repo", "cancel": True, "message": ""}]
    leave(terminal)


def test_a_form_is_left_open_and_brought_back(terminal: Terminal, asking_supervisor: AskingSupervisor) -> None:
    begin(terminal, asking_supervisor, "create a repo")
    terminal.wait_for("1/3 name")
    terminal.type("/later")
    terminal.wait_for(STAYS_OPEN)
    assert asking_supervisor.asker.answers == []
    terminal.type("/answer")
    terminal.wait_for("1/3 name", count=2)
    terminal.press("C-c")
    terminal.wait_for(STAYS_OPEN, count=2)
    terminal.type("sign in")
    terminal.wait_for(NEW_CONVERSATION)
    terminal.wait_for("1/1 api_key")
    terminal.type("/later")
    terminal.wait_for(STAYS_OPEN, count=3)
    assert asking_supervisor.asker.answers == []
    terminal.type("/answer")
    terminal.wait_for("1/1 api_key", count=2)
    terminal.type("/cancel no key")
    terminal.wait_for("Nothing was done.")
    terminal.type("/answer")
    terminal.wait_for("1/3 name", count=3)
    terminal.type("/cancel there is one already")
    terminal.wait_for("Nothing was done.", count=2)
    reasons = [answer["message"] for answer in asking_supervisor.asker.answers]
    assert reasons == ["no key", "there is one already"]
    terminal.type("/answer")
    terminal.wait_for("No form is open.")
    leave(terminal)


def test_a_credential_is_not_seen(terminal: Terminal, asking_supervisor: AskingSupervisor) -> None:
    begin(terminal, asking_supervisor, "sign in")
    terminal.wait_for("1/1 api_key")
    terminal.wait_for("›", count=2)
    terminal.type("open-sesame")
    shown = terminal.wait_for("Done with")
    assert asking_supervisor.asker.answers[0]["values"] == {"api_key": "open-sesame"}
    before, _, _ = shown.partition("Done with")
    assert "sesame" not in before
    leave(terminal)


@pytest.mark.parametrize(
    ("lines", "decision"),
    [
        (["approve"], {"type": "approve"}),
        (["maybe", "reject", "it is in use"], {"type": "reject", "message": "it is in use"}),
        (["always"], {"type": "approve", "remember": True}),
        (
            ["edit", "payments-web", "false", ""],
            {"type": "edit", "args": {"application": "payments-web", "cascade": False}},
        ),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_an_approval_is_decided(
    terminal: Terminal, asking_supervisor: AskingSupervisor, lines: list[str], decision: dict[str, object]
) -> None:
    begin(terminal, asking_supervisor, "delete the app")
    shown = terminal.wait_for(CHOICE)
    assert 'application: "payments-api"' in shown
    assert "always = approve, and do not ask again: Argocd may call delete_application" in shown
    for number, line in enumerate(lines, 2):
        terminal.wait_for("›", count=number)
        terminal.type(line)
    terminal.wait_for("Done with")
    assert asking_supervisor.asker.answers == [{"form_id": "form-delete", "decisions": [decision]}]
    leave(terminal)


def test_arguments_are_changed_in_the_editor(
    terminal: Terminal, asking_supervisor: AskingSupervisor, tmp_path: Path
) -> None:
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i s/payments-api/payments-web/ "$1"\n')
    editor.chmod(0o700)
    begin(terminal, asking_supervisor, "delete the app", EDITOR=str(editor))
    terminal.wait_for(CHOICE)
    terminal.type("edit")
    shown = terminal.wait_for("Done with")
    assert 'application: "payments-api" -> "payments-web"' in shown
    decision = {"type": "edit", "args": {"application": "payments-web"}}
    assert asking_supervisor.asker.answers == [{"form_id": "form-delete", "decisions": [decision]}]
    leave(terminal)


def test_several_forms_are_asked_one_after_the_other(terminal: Terminal, asking_supervisor: AskingSupervisor) -> None:
    begin(terminal, asking_supervisor, "both")
    terminal.wait_for("1 more is open and will be asked afterwards.")
    terminal.wait_for("1/3 name")
    terminal.type("demo")
    terminal.wait_for("[private] ›")
    terminal.type("")
    terminal.wait_for("3/3 reviewers")
    terminal.type("")
    shown = terminal.wait_for(CHOICE)
    assert [answer["form_id"] for answer in asking_supervisor.asker.answers] == ["form-repo"], "it was sent at once"
    assert shown.count("? Agent Github") == 1
    terminal.type("approve")
    terminal.wait_for("Done with")
    leave(terminal)


def test_what_is_typed_before_it_was_asked_for_approves_nothing(
    terminal: Terminal, asking_supervisor: AskingSupervisor
) -> None:
    terminal.run("chat", "--url", asking_supervisor.url, "delete the app", width=100, height=50)
    terminal.type("approve")
    shown = terminal.wait_for(CHOICE)
    assert shown.count(CHOICE) == 1
    terminal.type("/later")
    terminal.wait_for("[exit 3]")
    assert asking_supervisor.asker.answers == []


def test_a_question_on_the_command_line_is_left_open_and_answered_by_its_task(
    terminal: Terminal, asking_supervisor: AskingSupervisor
) -> None:
    terminal.run("chat", "--url", asking_supervisor.url, "create a repo", width=160, height=50)
    terminal.wait_for("1/3 name")
    terminal.type("/later")
    shown = terminal.wait_for("[exit 3]")
    task = shown.partition("--task ")[2].split()[0]
    terminal.close()
    terminal.run("chat", "--url", asking_supervisor.url, "--task", task, width=100, height=50)
    terminal.wait_for("1/3 name")
    terminal.press("C-c")
    terminal.wait_for("[exit 130]")
    terminal.close()
    terminal.run("chat", "--url", asking_supervisor.url, "--task", task, width=100, height=50)
    terminal.wait_for("1/3 name")
    terminal.type("demo")
    terminal.wait_for("[private] ›")
    terminal.type("")
    terminal.wait_for("3/3 reviewers")
    terminal.type("")
    shown = terminal.wait_for("[exit 0]")
    assert "✓ Agent Github" in shown
    assert "look_around" not in shown, "earlier events are not printed again"
