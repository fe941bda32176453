"""Forms as models write them become forms that people can fill in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from ai_platform_engineering.events import FieldRules, Form, FormField
from ai_platform_engineering.forms.filling import FilledForm, fill
from ai_platform_engineering.forms.response import CAIPEAgentResponse
from tests.strategies import json_values


def asked(*fields: Any) -> tuple[FormField, ...]:
    return CAIPEAgentResponse.model_validate({"title": "Create", "fields": list(fields)}).form("github").fields


def test_a_response_is_a_form_without_an_id() -> None:
    response = CAIPEAgentResponse.model_validate(
        {
            "title": "Create GitHub Repo",
            "description": "I need a few details.",
            "mood": "helpful",
            "fields": [
                {"name": "name", "type": "text", "description": "Its name", "min_length": 2, "max_length": 40},
                {"name": "stars", "type": "number", "minimum": 0, "maximum": 5, "integer": True, "default": 3},
                {"name": "public", "type": "boolean", "required": False, "default": False, "colour": "red"},
            ],
        }
    )
    form = response.form("github")
    assert form == Form(
        "",
        "Create GitHub Repo",
        (
            FormField("name", "text", "Its name", rules=FieldRules(min_length=2, max_length=40)),
            FormField("stars", "number", default_value=3, rules=FieldRules(0, 5, True)),
            FormField("public", "boolean", default_value=False, required=False),
        ),
        "I need a few details.",
        agent="github",
    )
    assert type(form.fields[1].default_value) is int
    assert form.fields[2].default_value is False
    assert fill(form, {"name": "demo"}) == FilledForm({"name": "demo", "stars": 3, "public": False})


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"name": " n ", "type": "hologram"}, FormField("n")),
        ({"name": "n", "type": 7}, FormField("n")),
        ({"name": "n", "type": "TextArea"}, FormField("n", "multiline")),
        ({"name": "n", "type": " INTEGER "}, FormField("n", "number", rules=FieldRules(integer=True))),
        ({"name": "n", "type": "int"}, FormField("n", "number", rules=FieldRules(integer=True))),
        ({"name": "n", "type": "integer", "integer": " No "}, FormField("n", "number")),
        ({"name": "n", "type": "number", "integer": "yes"}, FormField("n", "number", rules=FieldRules(integer=True))),
        ({"name": "n", "type": ["null", "bool"]}, FormField("n", "boolean")),
        ({"name": "n", "type": "string", "enum": ["a", "b"]}, FormField("n", "select", field_values=("a", "b"))),
        ({"name": "n", "options": ["a", 1, "a", None]}, FormField("n", "select", field_values=("a", "1"))),
        (
            {
                "name": "n",
                "type": "multiselect",
                "options": [{"label": "A", "value": "a"}, {"label": "B"}, {"name": "C"}],
            },
            FormField("n", "multiselect", field_values=("a", "B", "C")),
        ),
        ({"name": "n", "field_values": {"a": 1, "b": 2}}, FormField("n", "select", field_values=("a", "b"))),
        ({"name": "n", "choices": ("a", " b ", "")}, FormField("n", "select", field_values=("a", "b"))),
        ({"name": "n", "type": "select", "options": []}, FormField("n")),
        ({"name": "n", "type": "select", "options": "a, b"}, FormField("n", "select", field_values=("a", "b"))),
        ({"field_name": "n", "field_type": "url", "field_description": "d"}, FormField("n", "url", "d")),
        ({"name": "n", "label": "d", "default_value": ["a", 2]}, FormField("n", "text", "d", default_value=["a", "2"])),
        ({"name": "n", "type": "number", "value": 2.5}, FormField("n", "number", default_value=2.5)),
        ({"name": "n", "type": "number", "default": float("inf")}, FormField("n", "number")),
        ({"name": "n", "required": "no", "default": {"a": 1}}, FormField("n", required=False)),
        ({"name": "n", "required": " FALSE "}, FormField("n", required=False)),
        ({"name": "n", "required": False}, FormField("n", required=False)),
        ({"name": "n", "required": 0}, FormField("n")),
        ({"name": "n", "required": "perhaps", "minimum": 3}, FormField("n")),
        ({"name": "n", "type": "number", "minimum": "inf", "maximum": 10**400}, FormField("n", "number")),
        ({"name": "n", "type": "number", "minimum": True, "maximum": [3]}, FormField("n", "number")),
        (
            {"name": "n", "type": "number", "minimum": 3, "maximum": 3},
            FormField("n", "number", rules=FieldRules(3, 3)),
        ),
        (
            {"name": "n", "type": "number", "minimum": "2", "maximum": "many", "max_length": 3},
            FormField("n", "number", rules=FieldRules(2)),
        ),
        ({"name": "n", "min_length": -1, "max_length": 2.5}, FormField("n")),
        ({"name": "n", "min_length": "3", "max_length": 0}, FormField("n", rules=FieldRules(min_length=3))),
        ({"name": "n", "min_length": 0, "max_length": 3.0}, FormField("n", rules=FieldRules(max_length=3))),
        ({"name": "n", "type": "boolean", "max_length": 3, "minimum": 3}, FormField("n", "boolean")),
        ("n", FormField("n")),
    ],
)
def test_the_dialects_of_models_are_understood(field: Any, expected: FormField) -> None:
    assert asked(field) == (expected,)


@pytest.mark.parametrize(
    "fields",
    ['[{"name": "a"}, {"name": "b"}]', {"a": {"type": "text"}, "b": None}, [{"name": "a"}, "b"]],
)
def test_fields_may_be_written_in_several_ways(fields: Any) -> None:
    form = CAIPEAgentResponse.model_validate({"title": "T", "fields": fields}).form()
    assert [field.field_name for field in form.fields] == ["a", "b"]


def test_one_field_needs_no_list() -> None:
    for fields in ({"name": "a", "type": "number"}, {"field_name": "a", "type": "number"}, {"a": {"type": "number"}}):
        form = CAIPEAgentResponse.model_validate({"title": 5, "fields": fields}).form()
        assert form == Form("", "5", (FormField("a", "number"),))
    assert CAIPEAgentResponse.model_validate({"title": None, "fields": "[]"}).form().title == "Your input is needed"


def test_a_question_without_fields_takes_one_reply() -> None:
    several: list[dict[str, Any]] = [{}, {"fields": None}, {"fields": []}]
    for fields in several:
        form = CAIPEAgentResponse.model_validate({"description": "Which cluster?", **fields}).form("aws")
        assert form == Form(
            "",
            "Aws needs your input",
            (FormField("response", "multiline", "Your reply"),),
            "Which cluster?",
            agent="aws",
        )


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ([{"name": "a"}, {"name": "a"}], "`a` and `a` are one name: give every field a name of its own."),
        (
            [{"name": "repo_name"}, "x", {"name": "Repo-Name"}],
            "`repo_name` and `Repo-Name` are one name: give every field",
        ),
        ([{"name": "a"}, {"name": " "}], "Field 2 has no name: give every field a name of its own."),
        ([{"type": "text"}], "Field 1 has no name"),
        ("name and team", "`fields` is no list: give a list of objects, each with a name and a type."),
        (
            [{"name": "n", "type": "number", "minimum": 5, "maximum": 2.5}],
            "`n` takes at least 5 and at most 2.5: no value fits that.",
        ),
        ([{"name": "n", "min_length": 5, "max_length": 3}], "`n` takes at least 5 and at most 3"),
    ],
)
def test_a_form_that_cannot_be_filled_in_is_refused_with_a_sentence(fields: Any, sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        CAIPEAgentResponse.model_validate({"title": "T", "fields": fields})
    assert f"Value error, {sentence}" in str(caught.value)


@settings(max_examples=100, deadline=None)
@given(json_values, json_values, json_values, json_values)
def test_nothing_a_model_writes_for_one_field_is_too_odd(kind: Any, options: Any, default: Any, bound: Any) -> None:
    field = {"name": "n", "type": kind, "options": options, "default": default, "minimum": bound, "max_length": bound}
    assert len(asked(field)) == 1
