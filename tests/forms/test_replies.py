"""A message to open forms answers one of them, or brings them all back; nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import FieldRules, Form, FormField
from ai_platform_engineering.forms.answers import (
    Answer,
    Approved,
    Dismissed,
    Rejected,
    Submitted,
    answer_data,
    read_answer,
)
from ai_platform_engineering.forms.filling import FilledForm, InvalidForm, fill
from ai_platform_engineering.forms.questions import APPROVAL_FIELDS
from ai_platform_engineering.forms.replies import ASK_ELSEWHERE, AskAgain, FormReply, Resume, interpret
from tests.forms.declared import answered_forms, declared_forms, submitted_values
from tests.strategies import json_values

REPO = Form(
    "f1",
    "Create GitHub Repo",
    (
        FormField("repo_name", rules=FieldRules(pattern="[a-z-]+")),
        FormField("visibility", "select", field_values=("public", "private"), default_value="private"),
        FormField("stars", "number", required=False, rules=FieldRules(integer=True)),
        FormField("read me", "multiline", required=False),
    ),
    "A new repository",
    "I need a few details.",
    "github",
)
TICKET = Form("f2", "Open a ticket", (FormField("summary"), FormField("project")), agent="jira")
CLUSTER = Form("f3", "Which cluster?", (FormField("cluster"),), agent="aws")
APPROVAL = Form(
    "a1",
    "Approve delete_app?",
    (*APPROVAL_FIELDS, FormField("remember", "boolean", required=False)),
    agent="argocd",
    action_requests=({"agent": "argocd", "tool": "delete_app", "args": {"name": "shop"}},),
)
BARE_APPROVAL = replace(APPROVAL, fields=())


NOT_UNDERSTOOD = (
    "The answer was not understood: send `values` as an object, or `decisions` with one of type approve, edit "
    "(with `args` as an object) or reject, or `cancel`."
)


HOW_TO_ANSWER_REPO = "Reply with a value for `repo_name` (text that matches the pattern `[a-z-]+`), or with `cancel`."


def answer(form: Form, reply: FormReply | str) -> Answer:
    outcome = interpret([form], FormReply(reply) if isinstance(reply, str) else reply)
    assert isinstance(outcome, Resume), outcome
    assert outcome.form is form
    return outcome.answer


def back(forms: list[Form], reply: FormReply | str) -> tuple[Form, ...]:
    outcome = interpret(forms, FormReply(reply) if isinstance(reply, str) else reply)
    assert isinstance(outcome, AskAgain), outcome
    assert [form.form_id for form in outcome.forms] == [form.form_id for form in forms]
    return outcome.forms


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (CLUSTER, "cluster: prod", Submitted({"cluster": "prod"})),
        (CLUSTER, "Which cluster?: prod", Submitted({"cluster": "prod"})),
        (CLUSTER, "cancel", Dismissed()),
        (Form("f5", "Size?", (FormField("size", "select", field_values=("s", "m")),)), "m", Submitted({"size": "m"})),
        (APPROVAL, "approve", Approved()),
        (CLUSTER, "who is on call?", None),
        (CLUSTER, "prod", None),
        (APPROVAL, "who is on call?", None),
        (TICKET, "summarise the incidents", None),
    ],
)
def test_a_text_to_the_conversation_answers_only_if_it_plainly_does(
    form: Form, text: str, expected: Answer | None
) -> None:
    outcome = interpret([form], FormReply(text, to_conversation=True))
    if expected is not None:
        assert outcome == Resume(form, expected)
        return
    assert isinstance(outcome, AskAgain)
    [shown] = outcome.forms
    assert all(field.value is None for field in shown.fields)
    assert ASK_ELSEWHERE in shown.response
    assert "cancel" in shown.response or "reject" in shown.response


def test_a_text_that_may_be_a_new_question_says_how_to_answer_and_where_to_ask() -> None:
    [alone] = interpret([CLUSTER], FormReply("prod", to_conversation=True)).forms  # type: ignore[union-attr]
    assert alone.response == (
        f"A form is open: reply with `cluster: ...` (text), or with `cancel`. {ASK_ELSEWHERE} You wrote “prod”."
    )
    first, _ = interpret([CLUSTER, TICKET], FormReply("prod", to_conversation=True)).forms  # type: ignore[union-attr]
    assert first.response == (
        "Several forms are open, so say which one you answer. Begin with its name (`Which cluster?: ...`, "
        f"`Open a ticket: ...`), or send its `form_id`. {ASK_ELSEWHERE} You wrote “prod”."
    )


def data(**resume: Any) -> FormReply:
    return FormReply("", resume)


def typed(form: Form) -> dict[str, Any]:
    return {field.field_name: field.value for field in form.fields if field.value is not None}


def test_values_answer_the_form_they_name() -> None:
    outcome = interpret([REPO, TICKET], data(form_id="f2", values={"summary": "Broken", "project": "SHOP"}))
    assert outcome == Resume(TICKET, Submitted({"summary": "Broken", "project": "SHOP"}))


@pytest.mark.parametrize("form_id", [{}, {"form_id": None}, {"form_id": ""}])
def test_without_an_id_the_one_open_form_is_meant(form_id: dict[str, Any]) -> None:
    assert answer(CLUSTER, data(values={"cluster": "prod"}, **form_id)) == Submitted({"cluster": "prod"})


def test_without_an_id_values_find_the_one_form_that_has_fields_for_them() -> None:
    outcome = interpret([REPO, TICKET], data(values={"summary": "Broken", "project": "SHOP"}))
    assert isinstance(outcome, Resume)
    assert outcome.form is TICKET
    first, second = back([TICKET, replace(TICKET, form_id="f9", title="Other")], data(values={"summary": "Broken"}))
    assert first.response == (
        "Several forms are open, so say which one you answer. Begin with its name (`Open a ticket: ...`, "
        "`Other: ...`), or send its `form_id`. You sent summary: “Broken”."
    )
    assert second.response == ""
    decision = data(values={"decision": "approve"})
    assert interpret([CLUSTER, BARE_APPROVAL], decision) == Resume(BARE_APPROVAL, Approved())


@pytest.mark.parametrize(
    "resume", [{"cancel": True}, {"decisions": [{"type": "approve"}]}, {"values": {}}, {"values": {"zzz": 1}}]
)
def test_without_an_id_and_with_several_forms_nothing_is_guessed(resume: dict[str, Any]) -> None:
    assert "Several forms are open" in back([APPROVAL, CLUSTER], FormReply("", resume))[0].response


def test_a_form_that_is_not_open_was_answered_already() -> None:
    for values in ({"cluster": "prod"}, {"repo_name": "demo"}):
        first, second = back([CLUSTER, REPO], data(form_id="gone", values=values))
        assert first == replace(
            CLUSTER,
            response="That form was answered already. What is open now: “Which cluster?”, “Create GitHub Repo”.",
        )
        assert second is REPO


def test_a_bad_value_brings_back_its_form_and_leaves_the_others() -> None:
    first, second = back([REPO, CLUSTER], data(form_id="f1", values={"repo_name": "demo", "stars": "many"}))
    assert second is CLUSTER
    assert "`stars` takes a whole number" in first.response
    assert typed(first) == {"repo_name": "demo", "stars": "many"}
    assert answer(first, data(values={"stars": 3})) == Submitted(
        {"repo_name": "demo", "visibility": "private", "stars": 3}
    )


def test_decisions_on_a_form_are_its_values() -> None:
    ready = replace(CLUSTER, fields=(FormField("cluster", value="prod"),))
    assert answer(ready, data(decisions=[{"type": "approve"}])) == Submitted({"cluster": "prod"})
    assert answer(CLUSTER, data(decisions=[{"type": "edit", "values": {"cluster": "dev"}}])) == Submitted(
        {"cluster": "dev"}
    )
    assert answer(CLUSTER, data(decisions=[{"type": "reject", "message": "later"}])) == Dismissed("later")
    assert answer(CLUSTER, data(cancel=True, message="no time")) == Dismissed("no time")
    assert back([CLUSTER], data(decisions=[{"type": "approve"}]))[0].fields[0].error == "`cluster` is required."


@pytest.mark.parametrize("form", [APPROVAL, BARE_APPROVAL])
@pytest.mark.parametrize(
    ("resume", "expected"),
    [
        ({"decisions": [{"type": "approve"}]}, Approved()),
        ({"decisions": [{"type": "approve", "remember": True}]}, Approved(remember=True)),
        ({"decisions": [{"type": "edit", "args": {"name": "other", "n": 2}}]}, Approved({"name": "other", "n": 2})),
        ({"decisions": [{"type": "edit", "edited_action": {"args": {}}}]}, Approved({})),
        ({"decisions": [{"type": "reject", "message": "not now"}]}, Rejected("not now")),
        ({"decisions": [{"type": "approve"}, {"type": "approve"}]}, Approved()),
        ({"values": {"decision": "approve"}}, Approved()),
        ({"values": {"decision": "Reject", "reason": "not now"}}, Rejected("not now")),
        ({"cancel": True, "message": "not now"}, Rejected("not now")),
    ],
)
def test_an_approval_takes_a_decision(form: Form, resume: dict[str, Any], expected: Answer) -> None:
    assert answer(form, FormReply("", resume)) == expected


def test_an_approval_can_be_remembered() -> None:
    assert answer(APPROVAL, data(values={"decision": "approve", "remember": "yes"})) == Approved(remember=True)


@pytest.mark.parametrize(
    ("resume", "words"),
    [
        ({"values": ["approve"]}, NOT_UNDERSTOOD),
        ({"decisions": [{"type": "shrug"}]}, NOT_UNDERSTOOD),
        (
            {"decisions": [{"type": "approve"}, {"type": "reject"}]},
            "This form takes one decision, for everything in it.",
        ),
        ({"values": {}}, "`decision` is required"),
        ({"values": {"decision": "maybe"}}, "`decision` takes one of approve, reject; “maybe”"),
        ({"values": {"decision": "approve", "name": "shop"}}, "There is no field `name`"),
    ],
)
def test_what_is_no_decision_approves_nothing(resume: dict[str, Any], words: str) -> None:
    assert words in back([APPROVAL], FormReply("", resume))[0].response
    assert words in back([BARE_APPROVAL], FormReply("", resume))[0].response


def test_what_was_entered_before_decides_nothing() -> None:
    entered = back([APPROVAL], data(values={"decision": "approve", "remember": "perhaps"}))[0]
    assert typed(entered) == {"decision": "approve", "remember": "perhaps"}
    assert "`decision` is required" in back([entered], data(values={"remember": False}))[0].response
    defaulted = replace(APPROVAL, fields=(replace(APPROVAL_FIELDS[0], default_value="approve", required=False),))
    assert "`decision` is required" in back([defaulted], data(values={}))[0].response


def test_several_actions_are_approved_or_rejected_but_not_changed() -> None:
    two = replace(APPROVAL, action_requests=({"tool": "a"}, {"tool": "b"}))
    assert answer(two, data(decisions=[{"type": "approve"}])) == Approved()
    edited = back([two], data(decisions=[{"type": "edit", "args": {"n": 1}}]))[0]
    assert edited.response == "Several actions cannot be changed at once: approve or reject them."


@pytest.mark.parametrize(
    "field",
    [
        FormField("window"),
        FormField("verdict", "select", field_values=("approve", "reject")),
        FormField("decision", "text", field_values=("approve", "reject")),
        FormField("decision", "select", field_values=("approve", "later")),
    ],
)
def test_a_form_that_shows_actions_and_asks_for_values_is_a_form(field: FormField) -> None:
    form = replace(APPROVAL, fields=(field,))
    assert answer(form, data(values={field.field_name: "approve"})) == Submitted({field.field_name: "approve"})


def test_a_decision_needs_actions_and_may_have_other_options() -> None:
    more = FormField("decision", "select", field_values=("approve", "reject", "later"))
    assert answer(replace(APPROVAL, fields=(more,)), "approve") == Approved()
    no_actions = Form("f1", "Choose", (more,))
    assert answer(no_actions, data(values={"decision": "reject"})) == Submitted({"decision": "reject"})


def test_data_wins_over_text() -> None:
    assert answer(CLUSTER, FormReply("cancel", {"values": {"cluster": "prod"}})) == Submitted({"cluster": "prod"})
    assert answer(CLUSTER, FormReply("prod", {"cancel": True})) == Dismissed()
    assert "not understood" in back([CLUSTER], FormReply("prod", {"values": "dev"}))[0].response


def test_a_form_may_be_named_by_data_and_answered_by_text() -> None:
    outcome = interpret([CLUSTER, APPROVAL], FormReply("approve", {"form_id": "a1"}))
    assert outcome == Resume(APPROVAL, Approved())
    outcome = interpret([CLUSTER, APPROVAL], FormReply("approve", {"form_id": "f3"}))
    assert outcome == Resume(CLUSTER, Submitted({"cluster": "approve"}))
    outcome = interpret([CLUSTER, APPROVAL], FormReply("Which cluster?: approve", {}))
    assert outcome == Resume(CLUSTER, Submitted({"cluster": "approve"}))


@pytest.mark.parametrize("text", ["cancel", "Never mind.", " STOP! ", "abort"])
def test_a_word_cancels(text: str) -> None:
    assert answer(REPO, text) == Dismissed()
    assert answer(CLUSTER, text) == Dismissed()
    assert answer(APPROVAL, text) == Rejected()


def test_a_word_that_is_an_option_is_the_value() -> None:
    power = Form("f1", "Power", (FormField("action", "select", field_values=("start", "stop")),))
    assert answer(power, "Stop") == Submitted({"action": "stop"})
    assert answer(power, "cancel") == Dismissed()
    several = replace(power, fields=(FormField("action", "multiselect", field_values=("start", "stop")),))
    assert answer(several, " Stop ") == Submitted({"action": ["stop"]})
    assert answer(replace(power, fields=(FormField("action", "select"),)), "stop") == Dismissed()
    sure = Form("f1", "Sure?", (FormField("sure", "boolean", value=False),))
    assert answer(sure, "yes") == Submitted({"sure": True})
    assert answer(sure, "no") == Submitted({"sure": False})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("approve", Approved()),
        ("Yes!", Approved()),
        ("ok", Approved()),
        ("Go  ahead.", Approved()),
        ("approve always", Approved(remember=True)),
        ("Always", Approved(remember=True)),
        ("no", Rejected()),
        ("Deny.", Rejected()),
        ("reject: it is in use", Rejected("it is in use")),
        ("No, it is in use", Rejected("it is in use")),
        ("no, because it is in use", Rejected("it is in use")),
        ("deny because it is\nin use", Rejected("it is\nin use")),
        ("no - wait for Monday", Rejected("wait for Monday")),
        ("no, approve", Rejected("approve")),
        ("decision: approve", Approved()),
        ("Decision: reject\nreason: it is in use", Rejected("it is in use")),
        ("decision: approve\nremember: yes", Approved(remember=True)),
    ],
)
def test_an_approval_understands_words(text: str, expected: Answer) -> None:
    assert answer(APPROVAL, text) == expected


@pytest.mark.parametrize(
    "text", ["approve?", "no problem", "not yet", "yes but only tomorrow", "what would it delete?", "name: other", ""]
)
def test_an_approval_is_not_guessed(text: str) -> None:
    form = back([APPROVAL], text)[0]
    assert "Reply with `approve`, `approve always` or `reject: <reason>`." in form.response
    assert "Reply with `approve` or `reject: <reason>`." in back([BARE_APPROVAL], text)[0].response


def test_lines_name_their_fields() -> None:
    text = "_Repo--Name : demo\r\nVISIBILITY:public\r\n\r\nstars: 3\nRead_Me: # Demo \r\n\n  Two: lines\r\n"
    assert answer(REPO, text) == Submitted(
        {"repo_name": "demo", "visibility": "public", "stars": 3, "read me": "# Demo\n\n  Two: lines"}
    )
    assert answer(REPO, "repo_name: demo\nread me:\nfirst\nsecond") == Submitted(
        {"repo_name": "demo", "visibility": "private", "read me": "first\nsecond"}
    )
    assert answer(REPO, "read me: one line\n\nrepo_name: demo") == Submitted(
        {"repo_name": "demo", "visibility": "private", "read me": "one line"}
    )
    assert answer(TICKET, "summary: X\nproject: X") == Submitted({"summary": "X", "project": "X"})
    named_alike = replace(TICKET, title="Summary")
    assert answer(named_alike, "Summary: Broken\nproject: A") == Submitted({"summary": "Broken", "project": "A"})


def test_a_name_that_may_mean_two_fields_means_neither_unless_it_is_exact() -> None:
    form = Form("f1", "Create", (FormField("a b", required=False), FormField("a_b", required=False)))
    assert answer(form, "a_b: 1") == Submitted({"a_b": "1"})
    assert back([form], "a-b: 1")[0].response.endswith("You wrote “a-b: 1”.")


@pytest.mark.parametrize(
    ("text", "kept", "words"),
    [
        ("repo_name: demo\nplease", {"repo_name": "demo"}, "No field is named in “please”."),
        ("repo_name: demo\nowner: me", {"repo_name": "demo"}, "No field is named in “owner: me”."),
        (
            "stars: 3\nrepo_name: a\nrepo_name: b\nplease",
            {"stars": 3, "repo_name": "a"},
            "No field is named in “please”. `repo_name` is there twice, also with “b”.",
        ),
        (
            "read me: a\nb\nrepo_name: demo",
            {"read me": "a\nb", "repo_name": "demo"},
            "Give `read me` last: it has several lines.",
        ),
        ("stars: many\nplease", {"stars": "many"}, "No field is named in “please”."),
    ],
)
def test_what_was_understood_in_part_is_kept(text: str, kept: dict[str, Any], words: str) -> None:
    form = back([REPO], text)[0]
    assert typed(form) == kept
    assert form.response == f"{words} {HOW_TO_ANSWER_REPO}"
    assert [field.field_name for field in form.fields if field.error] == (["stars"] if "many" in text else [])


def test_what_is_kept_needs_not_be_typed_again() -> None:
    form = back([TICKET], "summary: Broken\nplease hurry")[0]
    assert answer(form, "SHOP") == Submitted({"summary": "Broken", "project": "SHOP"})


def test_an_error_goes_when_its_value_is_put_right() -> None:
    wrong = back([REPO], "repo_name: demo\nstars: many")[0]
    assert [field.error is None for field in wrong.fields] == [True, True, False, True]
    right = back([wrong], "stars: 3\nplease")[0]
    assert [field.error for field in right.fields] == [None] * 4
    assert typed(right) == {"repo_name": "demo", "stars": 3}


def test_a_text_is_the_value_of_the_one_open_field() -> None:
    assert answer(CLUSTER, " https://prod:8443 ") == Submitted({"cluster": "https://prod:8443"})
    assert answer(CLUSTER, "Cluster: prod") == Submitted({"cluster": "prod"})
    assert answer(CLUSTER, "one\ncluster: two") == Submitted({"cluster": "one\ncluster: two"})
    assert answer(REPO, "demo") == Submitted({"repo_name": "demo", "visibility": "private"})
    note = Form("f1", "Note", (FormField("note", "multiline", required=False),))
    assert answer(note, "  a: b\n  c\n") == Submitted({"note": "  a: b\n  c\n"})
    assert answer(note, "ok") == Submitted({"note": "ok"})


def test_a_field_with_a_wrong_value_is_open() -> None:
    wrong = back([REPO], "repo_name: demo\nstars: many")[0]
    assert answer(wrong, "7") == Submitted({"repo_name": "demo", "visibility": "private", "stars": 7})
    bad = back([REPO], "NOT GOOD")[0]
    assert typed(bad) == {"repo_name": "NOT GOOD"}
    assert "matches the pattern" in bad.response
    assert answer(bad, "good") == Submitted({"repo_name": "good", "visibility": "private"})


def test_a_form_with_nothing_missing_can_be_agreed_to() -> None:
    ready = replace(TICKET, fields=(FormField("summary", value="Broken"), FormField("project", default_value="SHOP")))
    assert answer(ready, "OK") == Submitted({"summary": "Broken", "project": "SHOP"})
    assert answer(ready, "project: OPS") == Submitted({"summary": "Broken", "project": "OPS"})
    assert back([ready], "hm")[0].response == (
        "Reply with `ok` to go on with the form as it is, with lines like `summary: ...` to change them, or with "
        "`cancel`. You wrote “hm”."
    )
    assert back([replace(ready, fields=())], "")[0].response == (
        "Reply with `ok` to go on with the form as it is, or with `cancel`."
    )
    assert answer(replace(CLUSTER, fields=(FormField("cluster", default_value="prod"),)), "ok") == Submitted(
        {"cluster": "prod"}
    )
    assert answer(replace(CLUSTER, fields=(FormField("cluster", value="prod"),)), "yes") == Submitted(
        {"cluster": "prod"}
    )
    assert answer(replace(CLUSTER, fields=()), "ok") == Submitted({})


@pytest.mark.parametrize("text", ["", "   ", "Broken, in SHOP", "what is this for?"])
def test_what_is_not_understood_brings_the_form_back_with_how_to_answer(text: str) -> None:
    form = back([TICKET], text)[0]
    assert form.response.startswith(
        "Reply with one line for each value (`summary: ...`, `project: ...`), or with `cancel`."
    )
    assert (f"“{text}”" in form.response) == bool(text.strip())
    assert form.fields == TICKET.fields


def test_with_several_forms_a_text_names_the_one_it_answers() -> None:
    forms = [CLUSTER, TICKET, APPROVAL]
    assert interpret(forms, FormReply("which cluster?: prod")) == Resume(CLUSTER, Submitted({"cluster": "prod"}))
    assert interpret(forms, FormReply("a1: no, wait")) == Resume(APPROVAL, Rejected("wait"))
    assert interpret(forms, FormReply("Open a ticket:\nsummary: Broken\nproject: SHOP")) == Resume(
        TICKET, Submitted({"summary": "Broken", "project": "SHOP"})
    )
    assert interpret(forms, FormReply("Approve delete_app?: cancel")) == Resume(APPROVAL, Rejected())
    assert back(forms, "Open a ticket: hm")[1].response == (
        "Reply with one line for each value (`summary: ...`, `project: ...`), or with `cancel`. You wrote “hm”."
    )


def test_the_name_of_the_one_open_form_is_no_part_of_the_value() -> None:
    assert answer(CLUSTER, " Which cluster?: prod") == Submitted({"cluster": "prod"})
    note = Form("n1", "Release", (FormField("note", "multiline"),))
    assert answer(note, "\n release:\t \n  a\n") == Submitted({"note": "  a\n"})
    assert answer(replace(CLUSTER, title=""), ": prod") == Submitted({"cluster": ": prod"})
    assert back([TICKET], "Open a ticket: hm")[0].response.endswith("You wrote “Open a ticket: hm”.")


def test_with_several_forms_a_text_that_fits_one_answers_it() -> None:
    assert interpret([TICKET, APPROVAL], FormReply("approve")) == Resume(APPROVAL, Approved())
    assert interpret([TICKET, CLUSTER], FormReply("prod")) == Resume(CLUSTER, Submitted({"cluster": "prod"}))
    scale = Form("f6", "Scale", (FormField("replicas", "number"),))
    assert interpret([scale, CLUSTER], FormReply("prod")) == Resume(CLUSTER, Submitted({"cluster": "prod"}))
    in_part = "summary: Broken\nplease"
    assert interpret([TICKET, CLUSTER], FormReply(in_part)) == Resume(CLUSTER, Submitted({"cluster": in_part}))
    lines = FormReply("summary: Broken\nproject: SHOP")
    assert interpret([CLUSTER, TICKET], lines) == Resume(TICKET, Submitted({"summary": "Broken", "project": "SHOP"}))
    first, second = back([APPROVAL, TICKET], "summary: Broken\nplease")
    assert first is APPROVAL
    assert typed(second) == {"summary": "Broken"}


@pytest.mark.parametrize("text", ["cancel", "approve", "hello there", ""])
def test_with_several_forms_a_text_that_fits_more_than_one_answers_none(text: str) -> None:
    first, *others = back([CLUSTER, APPROVAL, replace(CLUSTER, form_id="f4", title="Which region?")], text)
    assert first.response.startswith("Several forms are open, so say which one you answer. Begin with its name (`Which")
    assert [other.response for other in others] == ["", ""]


def test_forms_with_one_title_are_distinguished_by_their_ids() -> None:
    twin = replace(CLUSTER, form_id="f4")
    assert "`f3: ...`, `f4: ...`" in back([CLUSTER, twin], "Which cluster?: prod")[0].response
    assert interpret([CLUSTER, twin], FormReply("f4: prod")) == Resume(twin, Submitted({"cluster": "prod"}))
    for title in ("WHICH cluster?", ""):
        assert "(`f3: ...`, `f4: ...`)" in back([CLUSTER, replace(twin, title=title)], "prod")[0].response


def test_a_credential_in_a_text_is_not_repeated() -> None:
    login = Form("f1", "Log in", (FormField("user"), FormField("password")))
    for text in ("hunter22", "user: me\nhunter22", "password: hunter22\nplease", "password: a\npassword: hunter22"):
        assert "hunter22" not in repr(back([login], text))
        assert "hunter22" not in repr(back([login, CLUSTER], f"Log in: {text}"))
    assert back([login], "user: me\nhunter22")[0].response.startswith("No field is named in one of the lines. Reply")
    sent = data(values={"password": "hunter22", "zzz": 1, "yyy": "a"})
    assert back([login, CLUSTER], sent)[0].response.endswith("`form_id`. You sent zzz: “1”, yyy: “a”.")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_values_go_on_as_they_are_or_bring_the_form_back_with_a_reason(drawn: st.DataObject) -> None:
    form = drawn.draw(declared_forms())
    values = drawn.draw(submitted_values(form))
    outcome = interpret([CLUSTER, form], data(form_id=form.form_id, values=values))
    expected = fill(form, values)
    match outcome:
        case Resume(resumed, given_answer):
            assert resumed is form
            assert expected == FilledForm(dict(given_answer.values)) if isinstance(given_answer, Submitted) else False
            assert read_answer(answer_data(given_answer)) == given_answer
        case AskAgain((other, again)):
            assert other is CLUSTER
            assert again.response
            assert isinstance(expected, InvalidForm)
        case _:
            pytest.fail(f"something else happened: {outcome}")


@settings(max_examples=80, deadline=None)
@given(answered_forms())
def test_values_that_fit_reach_the_graph_unchanged(case: tuple[Form, dict[str, Any]]) -> None:
    form, values = case
    assert interpret([form], data(values=values)) == Resume(form, Submitted(values))


replies = st.builds(
    FormReply,
    st.text()
    | st.lists(
        st.sampled_from(
            ["name: demo", "replicas: 3", "Team: x", "stray", "cancel", "approve", "no, wait", "Create: yes", "note:"]
        ),
        max_size=4,
    ).map("\n".join),
    st.none()
    | st.fixed_dictionaries(
        {},
        optional={
            "form_id": st.sampled_from(["f1", "a1", "f3", "gone", ""]) | json_values,
            "values": json_values | st.dictionaries(st.sampled_from(["name", "decision", "cluster"]), json_values),
            "decisions": json_values
            | st.lists(
                st.fixed_dictionaries(
                    {"type": st.sampled_from(["approve", "edit", "reject"]) | json_values},
                    optional={"args": json_values, "message": json_values, "remember": json_values},
                ),
                max_size=2,
            ),
            "cancel": json_values,
        },
    ),
)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_message_answers_one_open_form_or_brings_them_all_back(drawn: st.DataObject) -> None:
    forms = drawn.draw(
        st.lists(
            st.sampled_from([CLUSTER, APPROVAL, BARE_APPROVAL, drawn.draw(declared_forms())]),
            min_size=1,
            max_size=3,
            unique_by=lambda form: form.form_id,
        )
    )
    outcome = interpret(forms, drawn.draw(replies))
    if isinstance(outcome, Resume):
        assert any(outcome.form is form for form in forms)
        match outcome.answer:
            case Submitted(values):
                assert not outcome.form.action_requests
                assert fill(outcome.form, values) == FilledForm(dict(values))
            case Approved() | Rejected():
                assert outcome.form.action_requests
            case Dismissed():
                assert not outcome.form.action_requests
    else:
        assert [form.form_id for form in outcome.forms] == [form.form_id for form in forms]
        changed = [form for form, before in zip(outcome.forms, forms, strict=True) if form is not before]
        assert len(changed) == 1
        assert changed[0].response
