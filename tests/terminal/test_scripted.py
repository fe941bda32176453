from __future__ import annotations

import pytest

from ai_platform_engineering.events import Form, FormField
from ai_platform_engineering.forms.answers import Answer, Approved, Dismissed, Rejected, Submitted
from ai_platform_engineering.terminal.scripted import NoAnswerError, ScriptedAnswer
from ai_platform_engineering.text.form_text import answer_text, command_lines
from tests.terminal.asking import DELETE, KEY, REPO, SCENARIOS


@pytest.mark.parametrize(
    ("scripted", "form", "answer"),
    [
        (ScriptedAnswer({"name": "demo"}), REPO, Submitted({"name": "demo"})),
        (ScriptedAnswer({}, approve=True), REPO, Submitted({})),
        (ScriptedAnswer({"name": "demo"}, approve=True), REPO, Submitted({"name": "demo"})),
        (ScriptedAnswer({}, reject="not now"), REPO, Dismissed("not now")),
        (ScriptedAnswer({}, approve=True), DELETE, Approved()),
        (ScriptedAnswer({}, reject=""), DELETE, Rejected("")),
        (ScriptedAnswer({"decision": "approve"}), DELETE, Submitted({"decision": "approve"})),
        (
            ScriptedAnswer({"application": "7", "cascade": "false"}, approve=True),
            DELETE,
            Approved({"application": "7", "cascade": False}),
        ),
    ],
)
def test_options_are_an_answer(scripted: ScriptedAnswer, form: Form, answer: Answer) -> None:
    assert scripted.select_form([form]) is form
    assert scripted.answer_to(form) == answer


def test_among_several_forms_the_one_that_fits_is_meant() -> None:
    forms = [REPO, KEY, DELETE]
    assert ScriptedAnswer({"name": "demo"}).select_form(forms) is REPO
    assert ScriptedAnswer({"api_key": "x"}).select_form(forms) is KEY
    assert ScriptedAnswer({}, approve=True).select_form(forms) is DELETE
    assert ScriptedAnswer({}, approve=True, form_id="form-repo").select_form(forms) is REPO


@pytest.mark.parametrize(
    ("scripted", "forms", "sentence"),
    [
        (ScriptedAnswer({"colour": "red"}), (REPO, KEY), "Choose one with --form"),
        (ScriptedAnswer({}, approve=True), SCENARIOS["both approvals"], "Choose one with --form"),
        (ScriptedAnswer({"name": "x"}, form_id="gone"), (REPO,), "No form 'gone' is open. Open forms: form-repo"),
        (ScriptedAnswer({"name": "x"}), (), "answer it with a message"),
    ],
)
def test_an_answer_that_fits_no_form_is_refused(
    scripted: ScriptedAnswer, forms: tuple[Form, ...], sentence: str
) -> None:
    with pytest.raises(NoAnswerError, match=sentence):
        scripted.select_form(forms)


def test_an_argument_that_is_no_text_must_be_json() -> None:
    with pytest.raises(NoAnswerError, match="cascade takes JSON, for example true"):
        ScriptedAnswer({"cascade": "maybe"}, approve=True).answer_to(DELETE)


def test_an_answer_reads_as_if_it_had_been_typed_and_keeps_credentials_to_itself() -> None:
    assert answer_text(REPO, Submitted({"name": "demo", "reviewers": 2})) == "name: demo\nreviewers: 2"
    assert answer_text(KEY, Submitted({"api_key": "open-sesame"})) == "api_key: ***"
    assert answer_text(DELETE, Approved({"token": "open-sesame", "cascade": False})) == (
        "approve with token = ***, cascade = false"
    )
    assert answer_text(DELETE, Approved(remember=True)) == "approve always"
    assert answer_text(DELETE, Rejected("in use")) == "reject: in use"
    assert answer_text(REPO, Dismissed()) == "cancel"


def test_the_way_to_answer_can_be_copied() -> None:
    odd = Form("f 1", "Odd", (FormField("a name"), FormField("other", required=False)))
    assert command_lines([odd], "t-1", None) == [
        "Answer it with:",
        "  platform-engineer chat --task t-1 --answer 'a name'=...",
    ]
    assert command_lines([odd, DELETE], "t-1", "http://127.0.0.1:1") == [
        "Answer it with:",
        "  platform-engineer chat --url http://127.0.0.1:1 --task t-1 --form 'f 1' --answer 'a name'=...",
        "  platform-engineer chat --url http://127.0.0.1:1 --task t-1 --form form-delete --approve",
        "  platform-engineer chat --url http://127.0.0.1:1 --task t-1 --form form-delete --reject REASON",
    ]
