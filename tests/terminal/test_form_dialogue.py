from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ai_platform_engineering.events import FieldRules, Form, FormField
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.forms.filling import InvalidForm, fill
from ai_platform_engineering.terminal.form_dialogue import (
    DISMISSED,
    NOT_APPROVED,
    EditorError,
    LeftOpen,
    Tone,
    ask_form,
)
from ai_platform_engineering.terminal.prompter import edit, editor_command
from tests.terminal.asking import DELETE, KEY, REPO

CTRL_C, CTRL_D = "^C", "^D"


@dataclass
class Typist:
    """Types these lines and then nothing more."""

    lines: list[str]
    editor: Callable[[str], str] | None = None
    shown: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    hidden: list[bool] = field(default_factory=list)

    def show(self, text: str, tone: Tone = "plain") -> None:
        self.shown.append(f"! {text.strip()}" if tone == "problem" else text.strip())

    def ask(self, label: str, *, hidden: bool = False) -> str:
        self.labels.append(label)
        self.hidden.append(hidden)
        line = self.lines.pop(0)
        if line == CTRL_D:
            raise EOFError
        if line == CTRL_C:
            raise KeyboardInterrupt
        return line

    def edit(self, text: str, name: str) -> str | None:
        return None if self.editor is None else self.editor(text)

    @property
    def problems(self) -> list[str]:
        return [line[2:] for line in self.shown if line.startswith("! ")]


def answered(form: Form, *lines: str, editor: Callable[[str], str] | None = None) -> tuple[Answer | LeftOpen, Typist]:
    prompter = Typist(list(lines), editor)
    answer = ask_form(form, prompter)
    assert prompter.lines == [], "all of it was asked for"
    return answer, prompter


def one(field_type: Any = "text", **fields: Any) -> Form:
    return Form("f", "One", (FormField("thing", field_type, **fields),))


def test_fields_are_asked_one_by_one_and_enter_takes_what_is_in_brackets() -> None:
    answer, prompter = answered(REPO, "demo", "", "")
    assert answer == Submitted({"name": "demo", "visibility": "private"})
    assert prompter.labels == ["", "[private]", ""]
    assert prompter.shown[:3] == [
        "Input needed (Github): Create GitHub Repo",
        "I need a few details.",
        "A new repository in the acme organisation.",
    ]
    assert "1/3 name (text, at least 3 characters, required): Name of the repository" in prompter.shown
    assert "3/3 reviewers (number, whole, 1 to 5, optional)" in prompter.shown


def test_a_bad_value_is_said_at_once_and_asked_again() -> None:
    answer, prompter = answered(REPO, "", "de", "demo", "secret", "1", "9", "2")
    assert answer == Submitted({"name": "demo", "visibility": "public", "reviewers": 2})
    assert [problem.split("`")[1] for problem in prompter.problems] == ["name", "name", "visibility", "reviewers"]
    assert prompter.labels == ["", "", "", "[private]", "[private]", "", ""]


@pytest.mark.parametrize(
    ("form", "lines", "value"),
    [
        (one("select", field_values=("public", "private")), ["2"], "private"),
        (one("select", field_values=("public", "private")), ["PRIVATE"], "private"),
        (one("select", field_values=("3", "2", "1")), ["1"], "1"),
        (one("select", field_values=("a", "b")), ["3", "0", "2"], "b"),
        (one("multiselect", field_values=("a", "b", "c")), ["1, c"], ["a", "c"]),
        (one("multiselect", field_values=("a, b", "c")), ["a, b"], ["a, b"]),
        (one("multiselect", field_values=("a", "b"), default_value=["a", "b"]), [""], ["a", "b"]),
        (one("boolean"), ["maybe", "y"], True),
        (one("boolean", default_value=True), ["no"], False),
        (one("boolean", default_value=False), [""], False),
        (one("number"), ["7"], 7),
        (one("number"), ["x", "7.5"], 7.5),
        (one("url"), ["nowhere", "https://acme.example/x"], "https://acme.example/x"),
        (one("email"), ["lena", "lena@acme.example"], "lena@acme.example"),
        (one("multiline"), ["first", "  second", ""], "first\n  second"),
        (one("multiline", value="as it was"), [""], "as it was"),
        (one(value="typed before", default_value="default"), [""], "typed before"),
        (one(default_value=""), ["", "x"], "x"),
    ],
)
def test_what_is_typed_becomes_a_value_of_the_field(form: Form, lines: list[str], value: object) -> None:
    answer, prompter = answered(form, *lines)
    assert answer == Submitted({"thing": value})
    assert type(answer.values["thing"]) is type(value)
    expected = 0 if form.fields[0].field_type == "multiline" else len(lines) - 1
    assert len(prompter.problems) == expected


def test_an_optional_field_may_be_left_out() -> None:
    assert answered(one(required=False), "")[0] == Submitted({})
    assert answered(one("multiline", required=False), "")[0] == Submitted({})


def test_a_form_without_fields_is_sent_with_enter() -> None:
    assert answered(Form("f", "Ready?"), "")[0] == Submitted({})


def test_several_lines_can_be_written_in_the_editor() -> None:
    form = one("multiline", value="before")
    answer, _ = answered(form, "/edit", editor=lambda text: f"{text}\n\nafter\n")
    assert answer == Submitted({"thing": "before\n\nafter"})
    answer, prompter = answered(form, "/edit", "by hand", "")
    assert answer == Submitted({"thing": "by hand"})
    assert "There is no editor; set EDITOR to have one." in prompter.problems


def test_a_form_that_comes_back_shows_what_is_wrong_and_what_was_typed() -> None:
    refused = fill(REPO, {"name": "de", "visibility": "public"})
    assert isinstance(refused, InvalidForm)
    answer, prompter = answered(refused.form, "demo", "", "")
    assert answer == Submitted({"name": "demo", "visibility": "public"})
    assert prompter.labels == ["[de]", "[public]", ""]
    assert prompter.problems == [refused.form.fields[0].error]
    assert "\n".join(prompter.shown).count(str(refused.form.fields[0].error)) == 1


@pytest.mark.parametrize("lines", [[CTRL_D], ["/cancel"], ["demo", CTRL_D], ["demo", "", "/Cancel "]])
def test_a_form_can_be_dismissed(lines: list[str]) -> None:
    answer, prompter = answered(REPO, *lines)
    assert answer == Dismissed()
    assert prompter.shown[-1] == DISMISSED


def test_a_form_can_be_dismissed_with_a_reason() -> None:
    assert answered(REPO, "/cancel there is one already")[0] == Dismissed("there is one already")


@pytest.mark.parametrize(("lines", "interrupted"), [(["/later"], False), (["demo", "/later"], False), ([CTRL_C], True)])
def test_a_form_can_be_left_open(lines: list[str], interrupted: bool) -> None:
    assert answered(REPO, *lines)[0] == LeftOpen(interrupted)
    assert answered(DELETE, lines[-1])[0] == LeftOpen(interrupted)


def test_credentials_are_typed_unseen_and_never_shown() -> None:
    answer, prompter = answered(KEY, "", "open-sesame")
    assert answer == Submitted({"api_key": "open-sesame"})
    assert prompter.hidden == [True, True]
    proposed = replace(KEY, fields=(replace(KEY.fields[0], default_value="open-sesame"),))
    _, prompter = answered(proposed, "")
    assert prompter.labels == ["[***]"]
    assert "open-sesame" not in "\n".join(prompter.shown)
    assert answered(REPO, "demo", "", "")[1].hidden == [False, False, False]


def test_an_approval_shows_agent_tool_and_arguments() -> None:
    answer, prompter = answered(DELETE, "approve")
    assert answer == Approved()
    assert prompter.shown[:3] == [
        "Approval needed (Argocd): Approve delete_application?",
        "Deletes an application and all that runs for it.",
        "Argocd would call delete_application with",
    ]
    assert prompter.shown[3:6] == ['application: "payments-api"', "cascade: true", 'token: "***"']


@pytest.mark.parametrize("typed", ["", "a", "maybe", "/help"])
def test_nothing_is_approved_by_accident(typed: str) -> None:
    answer, prompter = answered(DELETE, typed, "reject", "")
    assert answer == Rejected()
    assert prompter.problems == ["Type one of approve, edit, reject, always."]


def test_a_rejection_has_a_reason() -> None:
    assert answered(DELETE, "reject", "it is in use")[0] == Rejected("it is in use")
    assert answered(DELETE, "no", "")[0] == Rejected()


def test_always_says_exactly_what_is_remembered() -> None:
    answer, prompter = answered(DELETE, "always")
    assert answer == Approved(remember=True)
    remembered = 'Argocd may call delete_application with application = "payments-api"'
    assert sum(remembered in line for line in prompter.shown) == 2, "before it is chosen and when it was"


def test_always_is_not_offered_where_nothing_would_be_remembered() -> None:
    foreign = Form("f", "Approve?", action_requests=({"name": "sync", "args": {"app": "x"}},))
    answer, prompter = answered(foreign, "always", "approve")
    assert answer == Approved()
    assert prompter.labels[0] == "approve / edit / reject"


@pytest.mark.parametrize(
    ("leading", "words"),
    [
        ({}, "may call sync with any arguments, whatever"),
        ({"app": None}, "may call sync without app, whatever"),
        ({"app": "x", "count": 2}, 'may call sync with app = "x", count = 2, whatever'),
    ],
)
def test_what_would_be_remembered_is_said_for_every_kind_of_call(leading: dict[str, object], words: str) -> None:
    request = {"agent": "argocd", "tool": "sync", "args": {}, "remember": leading}
    _, prompter = answered(Form("f", "Approve sync?", action_requests=(request,)), "always")
    assert words in prompter.shown[-1]


def test_a_form_that_only_shows_an_action_is_filled_in() -> None:
    form = replace(REPO, action_requests=({"tool": "create_repo", "args": {"org": "acme"}},))
    answer, prompter = answered(form, "demo", "", "")
    assert answer == Submitted({"name": "demo", "visibility": "private"})
    assert 'org: "acme"' in prompter.shown


def test_dismissing_an_approval_counts_as_a_rejection() -> None:
    answer, prompter = answered(DELETE, CTRL_D)
    assert answer == Dismissed()
    assert prompter.shown[-1] == NOT_APPROVED


def test_long_arguments_are_cut_and_say_so() -> None:
    request = {"agent": "a", "tool": "t", "args": {"rows": list(range(100)), "text": "x" * 5000, "yes": True}}
    _, prompter = answered(Form("f", "Approve?", action_requests=(request,)), "approve")
    assert len("\n".join(prompter.shown)) < 2000
    assert any("characters)" in line for line in prompter.shown)
    assert any(line.startswith("... and ") and line.endswith(" more lines") for line in prompter.shown)
    assert "yes: true" in prompter.shown, "a long argument hides no other"


def test_long_arguments_are_shown_in_full_before_they_are_decided() -> None:
    request = {"agent": "a", "tool": "t", "args": {"rows": list(range(100)), "text": f"one\n{'x' * 5000}\nlast"}}
    answer, prompter = answered(Form("f", "Approve?", action_requests=(request,)), "show", "approve")
    assert answer == Approved()
    assert prompter.labels[0] == "show all / approve / edit / reject"
    whole = [line.strip() for line in prompter.shown]
    assert {"99", "| one", f"| {'x' * 5000}", "| last"} <= set(whole)


def test_arguments_cannot_act_on_the_terminal() -> None:
    request = {"agent": "a\x1b", "tool": "t\x9b", "args": {"x\x1b[2J": "\u202eevil\x9b"}, "remember": {"x\x1b": "\x9b"}}
    _, prompter = answered(Form("f", "A\x1b?", description="\x07d", action_requests=(request,)), "always")
    assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set("".join([*prompter.shown, *prompter.labels]))


def change(**arguments: object) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **arguments})


def test_arguments_are_changed_in_the_editor_and_only_changed_ones_are_sent() -> None:
    answer, prompter = answered(DELETE, "edit", editor=change(application="payments-web", force=1))
    assert answer == Approved({"application": "payments-web", "force": 1})
    assert 'application: "payments-api" -> "payments-web"' in prompter.shown
    assert "force: (new) 1" in prompter.shown


def test_true_is_not_one() -> None:
    assert answered(DELETE, "edit", editor=change(cascade=1))[0] == Approved({"cascade": 1})


@pytest.mark.parametrize("left", ["{", "[1]", '{"application": "payments-api"}'])
def test_what_the_editor_leaves_must_be_an_object_with_a_change(left: str) -> None:
    texts: list[str] = []

    def editor(text: str) -> str:
        texts.append(text)
        return left if len(texts) == 1 else '{"application": "x"}'

    answer, prompter = answered(DELETE, "edit", "edit", editor=editor)
    assert answer == Approved({"application": "x"})
    assert len(prompter.problems) == 1
    if left[-1] != "}":
        assert texts[1] == left, "what was typed is not lost"


def test_an_argument_that_is_left_out_in_the_editor_stays() -> None:
    answer, prompter = answered(DELETE, "edit", editor=lambda _: '{"cascade": false}')
    assert answer == Approved({"cascade": False})
    assert any(line.startswith("Left out, so unchanged: application, token") for line in prompter.shown)


def test_without_an_editor_arguments_are_asked_one_after_the_other() -> None:
    answer, prompter = answered(DELETE, "edit", "payments-web", "no", "false", "")
    assert answer == Approved({"application": "payments-web", "cascade": False})
    assert prompter.labels[1:] == ["application [payments-api]", "cascade [true]", "cascade [true]", "token [***]"]
    assert prompter.hidden[-1], "a credential is typed unseen here too"


def test_an_editor_that_does_not_work_is_named_and_the_arguments_are_asked() -> None:
    def broken(_: str) -> str:
        raise EditorError("The editor 'ed' exited with 1; nothing was changed.")

    answer, prompter = answered(DELETE, "edit", "x", "", "", editor=broken)
    assert answer == Approved({"application": "x"})
    assert prompter.problems == ["The editor 'ed' exited with 1; nothing was changed."]


def test_others_that_are_open_are_mentioned() -> None:
    prompter = Typist(["/later"])
    ask_form(REPO, prompter, others=2)
    assert "2 more are open and will be asked afterwards." in prompter.shown


def test_the_editor_of_the_person_is_used(tmp_path: Path) -> None:
    script = tmp_path / "my editor"
    script.write_text('#!/bin/sh\nprintf more >> "$2"\n')
    script.chmod(0o700)
    assert edit(f"'{script}' --wait", "text and ", "a.txt") == "text and more"
    assert editor_command({"EDITOR": "ed", "VISUAL": "vi"}) == "vi"
    assert editor_command({"EDITOR": "ed"}) == "ed"
    assert editor_command({"EDITOR": ""}) is None


@pytest.mark.parametrize("command", ["/nowhere/editor", "false", "ed '"])
def test_an_editor_that_cannot_be_used_is_named(command: str) -> None:
    with pytest.raises(EditorError, match="The editor") as caught:
        edit(command, "text", "a.txt")
    assert repr(command) in str(caught.value)


def test_rules_are_shown_with_the_field() -> None:
    rules = FieldRules(maximum=3.5)
    _, prompter = answered(one("number", rules=rules), "3")
    assert "1/1 thing (number, at most 3.5, required)" in prompter.shown
