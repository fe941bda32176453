"""Whatever a graph waits with, a person gets a form that can be answered."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import FieldRules, Form, FormField
from ai_platform_engineering.forms.filling import FilledForm, fill
from ai_platform_engineering.forms.questions import APPROVAL_FIELDS, form_of, question_data
from ai_platform_engineering.utils.redact import MASK
from tests.forms.declared import declared_forms
from tests.strategies import json_values

PLAIN_RULES = FieldRules()


def test_a_form_is_asked_without_its_id() -> None:
    form = Form("f1", "Create", (FormField("name"),), agent="github")
    assert "form_id" not in question_data(form)
    assert form_of("i1", question_data(form), "jira") == replace(form, form_id="i1")


@settings(max_examples=60, deadline=None)
@given(declared_forms())
def test_the_form_of_a_question_is_the_one_that_was_asked(form: Form) -> None:
    fields = tuple(replace(field, rules=None) if field.rules == PLAIN_RULES else field for field in form.fields)
    asked = replace(form, agent="github", fields=fields)
    # NaN is unlike itself; what is shown of it is the same.
    assert repr(form_of("i1", question_data(asked))) == repr(replace(asked, form_id="i1"))


def test_no_form_shows_credentials() -> None:
    args = {"name": "ada", "password": "hunter2", "login": {"api_key": {"value": "k-98765"}}, "token": ""}
    requests = ({"tool": "create", "args": args, "remember": args}, {"tool": "delete", "args": "all"})
    foreign = Form("f1", "Create?", APPROVAL_FIELDS, action_requests=requests)
    shown = {"name": "ada", "password": MASK, "login": {"api_key": {"value": MASK}}, "token": ""}
    assert form_of("i1", question_data(foreign)).action_requests == (
        {"tool": "create", "args": shown, "remember": shown},
        {"tool": "delete", "args": "all"},
    )


def test_a_text_is_a_question_with_one_field() -> None:
    assert form_of("i1", "Which cluster?", "aws_cost") == Form(
        "i1",
        "Aws_Cost needs your input",
        (FormField("response", "multiline", "Your reply"),),
        "Which cluster?",
        agent="aws_cost",
    )
    for payload in ("  ", None):
        assert form_of("i1", payload) == Form(
            "i1",
            "Your input is needed",
            (FormField("response", "multiline", "Your reply"),),
            "It needs more information to go on.",
        )


def test_an_action_to_review_is_an_approval() -> None:
    payload = {
        "action_requests": [{"name": "delete_app", "args": {"name": "shop", "n": 2}, "description": "Deletes it."}],
        "review_configs": [{"action_name": "delete_app", "allowed_decisions": ["approve", "reject"]}],
    }
    assert form_of("i1", payload, "argocd") == Form(
        "i1",
        "Approve delete_app?",
        APPROVAL_FIELDS,
        agent="argocd",
        action_requests=(
            {"agent": "argocd", "tool": "delete_app", "args": {"name": "shop", "n": 2}, "description": "Deletes it."},
        ),
    )
    secret = form_of("i1", {"action_requests": [{"name": "login", "args": {"api_key": "hunter2hunter2"}}]})
    assert "hunter2" not in str(secret)
    two = form_of("i1", {"action_requests": ({"name": "a"}, "?", {"name": "b", "args": None}, {"args": {}})})
    assert two.title == "Approve 2 actions?"
    assert two.action_requests == tuple(
        {"agent": None, "tool": tool, "args": {}, "description": ""} for tool in ("a", "b")
    )


def test_a_form_that_is_incomplete_gets_the_usual_title_and_fields() -> None:
    assert form_of("i1", {"user_input": True, "input_title": " "}, "jira") == Form(
        "i1", "Jira needs your input", agent="jira"
    )
    approval = form_of("i1", {"user_input": True, "input_title": "Go?", "action_requests": [{"tool": "sync"}]})
    assert (approval.title, approval.fields) == ("Go?", APPROVAL_FIELDS)


def test_anything_else_is_shown_as_its_text() -> None:
    assert form_of("i1", {"question": "Größe?", "n": 2}).description == '{"question": "Größe?", "n": 2}'
    assert form_of("i1", {"when": date(2025, 1, 2)}).description == '{"when": "2025-01-02"}'
    assert form_of("i1", {("a", "b"): 1}).description == "{('a', 'b'): 1}"
    assert form_of("i1", {"action_requests": [{"args": {}}]}).fields[0].field_name == "response"


def test_fields_without_a_unique_name_are_left_out() -> None:
    fields = [{"field_name": "a"}, {"field_name": "a", "field_type": "number"}, {"field_name": " "}, 7]
    assert [field.field_type for field in form_of("i1", {"input_fields": fields}).fields] == ["text"]
    assert form_of("i1", {"input_fields": [{"field_type": "text"}]}).fields[0].field_name == "response"


def test_a_payload_that_cannot_be_written_is_still_a_question() -> None:
    payload: list[Any] = []
    for _ in range(100_000):
        payload = [payload]
    assert form_of("i1", payload).description == "It needs more information to go on."


shapes = json_values | st.fixed_dictionaries(
    {},
    optional={
        "user_input": json_values | st.just(True),
        "form_id": json_values,
        "input_title": json_values,
        "input_fields": json_values
        | st.lists(
            st.fixed_dictionaries(
                {}, optional={"field_name": json_values, "field_values": json_values, "validation": json_values}
            ),
            max_size=3,
        ),
        "agent": json_values,
        "action_requests": json_values | st.lists(st.fixed_dictionaries({"name": json_values}), max_size=2),
    },
)


@settings(max_examples=150, deadline=None)
@given(shapes, st.none() | st.just("jira"))
def test_a_payload_of_any_shape_gives_a_form_that_can_be_answered(payload: Any, agent: str | None) -> None:
    form = form_of("i1", payload, agent)
    assert form.form_id == "i1"
    assert form.title
    names = [field.field_name for field in form.fields]
    assert all(names)
    assert len(names) == len(set(names))
    if names == ["response"]:
        assert fill(form, {"response": "Because."}) == FilledForm({"response": "Because."})
