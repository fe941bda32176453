"""A form is filled in with exactly what was given, or comes back with what was typed and why it will not do."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Value
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import FieldRules, FieldType, Form, FormField
from ai_platform_engineering.utils.a2a_common.codec.values import get_value, set_value
from ai_platform_engineering.utils.forms.credentials import is_secret
from ai_platform_engineering.utils.forms.filling import Filled, Refused, fill, propose
from tests.forms.declared import answered_forms, declared_forms, submitted_values


def form(*fields: FormField) -> Form:
    return Form("f1", "Create", fields, "A description", "I need a few details.", "github")


def taken(field: FormField, value: Any) -> Any:
    filled = fill(form(field), {field.field_name: value})
    assert isinstance(filled, Filled), filled
    return filled.values[field.field_name]


def refused(field: FormField, value: Any) -> str:
    outcome = fill(form(field), {field.field_name: value})
    assert isinstance(outcome, Refused), outcome
    error = outcome.form.fields[0].error
    assert error is not None
    assert outcome.form.response == error
    assert f"`{field.field_name}`" in error
    return error


VISIBILITY = FormField("visibility", "select", field_values=("public", "Private"))
LABELS = FormField("labels", "multiselect", field_values=("bug", "Feature", "a, b"))
REPLICAS = FormField("replicas", "number", rules=FieldRules(minimum=1, maximum=5, integer=True))


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        (FormField("name"), "demo", "demo"),
        (FormField("name"), " demo ", " demo "),
        (FormField("text", "multiline"), "a\nb", "a\nb"),
        (FormField("n", "number"), 3, 3),
        (FormField("n", "number"), 3.0, 3),
        (FormField("n", "number"), 2.5, 2.5),
        (FormField("n", "number"), " 7 ", 7),
        (FormField("n", "number"), "-2.50", -2.5),
        (FormField("n", "number"), "1e3", 1000),
        (FormField("n", "number"), "12345678901234567891", 12345678901234567891),
        (FormField("n", "number"), 1e300, 1e300),
        (REPLICAS, 5, 5),
        (REPLICAS, "1", 1),
        (FormField("now", "boolean"), False, False),
        (FormField("now", "boolean"), "Yes", True),
        (FormField("now", "boolean"), "false", False),
        (VISIBILITY, "public", "public"),
        (VISIBILITY, "PRIVATE", "Private"),
        (FormField("size", "select", field_values=("1", "2.5", "True")), 1.0, "1"),
        (FormField("size", "select", field_values=("1", "2.5", "True")), 2.5, "2.5"),
        (FormField("size", "select", field_values=("1", "2.5", "True")), True, "True"),
        (FormField("size", "select", field_values=("a", "A")), "A", "A"),
        (FormField("size", "select"), "anything", "anything"),
        (LABELS, ["feature", "bug"], ["Feature", "bug"]),
        (LABELS, "bug, feature", ["bug", "Feature"]),
        (LABELS, "a, b", ["a, b"]),
        (replace(LABELS, required=False), [], []),
        (FormField("tags", "multiselect"), "x, y,", ["x", "y"]),
        (FormField("link", "url"), "https://example.com/a?b=c", "https://example.com/a?b=c"),
        (FormField("link", "url"), "HTTP://127.0.0.1:8000", "HTTP://127.0.0.1:8000"),
        (FormField("mail", "email"), "jane.doe+x@mail.example.com", "jane.doe+x@mail.example.com"),
        (FormField("name", rules=FieldRules(min_length=2, max_length=4, pattern="[a-z]+")), "demo", "demo"),
        (FormField("name", rules=FieldRules(pattern="[")), "demo", "demo"),
        (FormField("name", rules=FieldRules(pattern="a+")), "b" * 10_001, "b" * 10_001),
    ],
)
def test_a_value_that_fits_is_taken(field: FormField, value: Any, expected: Any) -> None:
    got = taken(field, value)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        (FormField("name"), 5, "takes text; “5” is not text"),
        (FormField("name"), {"a": 1}, "is not text"),
        (FormField("n", "number"), "abc", "takes a number; “abc” is not that"),
        (FormField("n", "number"), True, "takes a number"),
        (FormField("n", "number"), math.nan, "takes a number"),
        (FormField("n", "number"), -math.inf, "takes a number"),
        (FormField("n", "number"), "1e999", "takes a number"),
        (FormField("n", "number"), "9" * 401, "takes a number"),
        (FormField("n", "number"), "1_000", "takes a number"),
        (FormField("n", "number"), "12345678901234567.5", "has more digits than can be kept"),
        (FormField("n", "number"), [1], "takes a number"),
        (REPLICAS, 0, "a whole number from 1 to 5; “0”"),
        (REPLICAS, 6, "a whole number from 1 to 5; “6”"),
        (REPLICAS, 2.5, "a whole number from 1 to 5; “2.5”"),
        (FormField("n", "number", rules=FieldRules(minimum=2)), 1, "a number of at least 2"),
        (FormField("n", "number", rules=FieldRules(maximum=2.5)), 3, "a number of at most 2.5"),
        (FormField("n", "number", rules=FieldRules(integer=True)), 1.2345678901234567e19, "send it as text"),
        (FormField("now", "boolean"), "maybe", "takes yes or no; “maybe”"),
        (FormField("now", "boolean"), 1, "takes yes or no"),
        (VISIBILITY, "secret", "takes one of public, Private; “secret”"),
        (VISIBILITY, ["public"], "takes one of public, Private"),
        (FormField("size", "select", field_values=("ab", "AB")), "Ab", "takes one of ab, AB"),
        (FormField("size", "select", field_values=tuple(map(str, range(30)))), "x", "18, 19 and 10 more"),
        (FormField("size", "select"), 5, "takes text; “5” is not that"),
        (FormField("tags", "multiselect"), ["x", 5], "takes texts with commas between them; “5” is not that"),
        (LABELS, ["bug", "new"], "takes one or more of bug, Feature, a, b; “new”"),
        (LABELS, "bug, new", "“new”"),
        (LABELS, [], "takes one or more"),
        (LABELS, {"bug": True}, "takes one or more"),
        (FormField("link", "url"), "ftp://example.com", "takes an address that begins with http:// or https://"),
        (FormField("link", "url"), "https://", "takes an address"),
        (FormField("link", "url"), "https://exa mple.com", "takes an address"),
        (FormField("link", "url"), "https://[::1", "takes an address"),
        (FormField("link", "url"), "https://example.com:99999", "takes an address"),
        (FormField("link", "url"), 5, "takes an address"),
        (FormField("mail", "email"), "jane", "takes an e-mail address"),
        (FormField("mail", "email"), "a@b@example.com", "takes an e-mail address"),
        (FormField("name", rules=FieldRules(min_length=2)), "a", "at least 2 characters; “a” has 1"),
        (FormField("name", rules=FieldRules(max_length=1)), "abc", "at most 1 character; “abc” has 3"),
        (FormField("name", rules=FieldRules(min_length=2, max_length=3)), "abcd", "of 2 to 3 characters"),
        (FormField("name", rules=FieldRules(pattern="[a-z]+")), "demo1", "matches the pattern `[a-z]+`; “demo1” does"),
        (FormField("link", "url", rules=FieldRules(max_length=10)), "https://example.com", "at most 10 characters"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_words(field: FormField, value: Any, words: str) -> None:
    assert words in refused(field, value)


@pytest.mark.parametrize("omitted", [{}, {"name": ""}, {"name": "  "}, {"name": None}])
def test_a_field_that_is_left_out_takes_what_is_proposed_then_the_default_then_nothing(omitted: dict[str, Any]) -> None:
    both = FormField("name", default_value="default", value="proposed")
    assert fill(form(both), omitted) == Filled({"name": "proposed"})
    assert fill(form(replace(both, value=None)), omitted) == Filled({"name": "default"})
    assert fill(form(FormField("name", required=False)), omitted) == Filled({})
    required = fill(form(FormField("name")), omitted)
    assert isinstance(required, Refused)
    assert required.form.response == "`name` is required."


def test_what_is_proposed_is_checked_and_converted_like_everything_else() -> None:
    replicas = replace(REPLICAS, value="3")
    assert fill(form(replicas), {}) == Filled({"replicas": 3})
    assert isinstance(fill(form(replace(replicas, value=9)), {}), Refused)


def test_a_default_that_does_not_fit_is_none() -> None:
    team = FormField("team", "select", field_values=("a", "b"), default_value="c", required=False)
    assert fill(form(team), {}) == Filled({})
    assert isinstance(fill(form(replace(team, required=True)), {}), Refused)


def test_what_does_not_fit_can_be_taken_back() -> None:
    first = fill(form(replace(REPLICAS, required=False)), {"replicas": "many"})
    assert isinstance(first, Refused)
    assert isinstance(fill(first.form, {}), Refused)
    assert fill(first.form, {"replicas": ""}) == Filled({})


def test_a_form_comes_back_with_what_was_typed_and_only_what_is_wrong_now() -> None:
    asked = form(FormField("name"), VISIBILITY, REPLICAS, FormField("note", required=False))
    first = fill(asked, {"name": "demo", "visibility": "PUBLIC", "replicas": 9})
    assert isinstance(first, Refused)
    assert [field.value for field in first.form.fields] == ["demo", "public", 9, None]
    assert [field.error is None for field in first.form.fields] == [True, True, False, True]
    second = fill(first.form, {"replicas": 2, "name": 7})
    assert isinstance(second, Refused)
    assert [field.value for field in second.form.fields] == [7, "public", 2, None]
    assert [field.error is None for field in second.form.fields] == [False, True, True, True]
    assert fill(second.form, {"name": "demo"}) == Filled({"name": "demo", "visibility": "public", "replicas": 2})
    assert replace(second.form, fields=asked.fields, response=asked.response) == asked


def test_a_name_that_is_no_field_is_named_with_its_value_and_the_nearest_one() -> None:
    outcome = fill(form(FormField("name"), FormField("team", required=False)), {"name": "demo", "taem": "shop"})
    assert isinstance(outcome, Refused)
    assert outcome.form.response == "There is no field `taem` (with “shop”); did you mean `team`?"
    assert outcome.form.fields[0].value == "demo"
    far = fill(form(FormField("name")), {"name": "demo", "zzz": 1})
    assert isinstance(far, Refused)
    assert far.form.response == "There is no field `zzz` (with “1”); the fields are `name`."
    none = fill(form(), {"x" * 500: None})
    assert isinstance(none, Refused)
    assert none.form.response.endswith("…`; the form has no fields.")


def test_a_credential_is_neither_repeated_nor_kept() -> None:
    asked = form(FormField("name"), FormField("apiToken", rules=FieldRules(min_length=9)))
    for values in ({"apiToken": "hunter22"}, {"apiToken": "hunter2222"}, {"name": "demo", "password": "hunter22"}):
        outcome = fill(asked, values)
        assert isinstance(outcome, Refused)
        assert "hunter22" not in str(outcome)
    good = fill(asked, {"apiToken": "hunter2222"})
    assert isinstance(good, Refused)
    assert good.form.fields[1].error is None
    assert "Please enter `apiToken` again: it is not kept." in good.form.response
    assert fill(good.form, {"name": "demo", "apiToken": "hunter2222"}) == Filled(
        {"name": "demo", "apiToken": "hunter2222"}
    )


def test_what_looks_like_a_credential_is_not_quoted_from_any_field() -> None:
    error = refused(FormField("note", rules=FieldRules(max_length=3)), "token=ghp_abcdefghij0123456789")
    assert "ghp_" not in error


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("password", True),
        ("api_key", True),
        ("api-key", True),
        ("apiKey", True),
        ("API key", True),
        ("githubToken", True),
        ("client secret", True),
        ("issue_key", False),
        ("projectKey", False),
        ("key", False),
        ("token_name", False),
        ("repository", False),
        ("", False),
    ],
)
def test_names_tell_which_fields_take_credentials(name: str, secret: bool) -> None:
    assert is_secret(name) is secret


def test_numbers_json_does_not_know_come_back_as_text() -> None:
    outcome = fill(form(FormField("n", "number"), FormField("m")), {"n": math.nan, "m": [{"x": math.inf}]})
    assert isinstance(outcome, Refused)
    assert [field.value for field in outcome.form.fields] == ["nan", [{"x": "inf"}]]


def test_of_two_fields_with_one_name_the_first_counts() -> None:
    twice = form(FormField("n", "number"), FormField("n", "boolean"))
    assert fill(twice, {"n": 3}) == Filled({"n": 3})
    outcome = fill(twice, {"n": "x"})
    assert isinstance(outcome, Refused)
    assert [field.field_type for field in outcome.form.fields] == ["number", "boolean"]


def test_proposing_keeps_what_has_a_field_and_checks_nothing() -> None:
    asked = form(FormField("name", value="old"), REPLICAS, FormField("password"))
    proposed = propose(asked, {"name": "", "replicas": 99, "password": "hunter22", "other": 1})
    assert [field.value for field in proposed.fields] == ["old", 99, None]
    assert [field.error for field in proposed.fields] == [None, None, None]


def through_protobuf(values: Any) -> Any:
    message = Value()
    set_value(message, values)
    copy = Value()
    copy.ParseFromString(message.SerializeToString())
    return get_value(copy)


@given(st.integers(), st.booleans())
def test_integers_stay_integers_through_protobuf(number: int, ruled: bool) -> None:
    field = FormField("n", "number", rules=FieldRules(integer=True) if ruled else None)
    got = taken(field, through_protobuf({"n": number})["n"])
    assert got == number
    assert type(got) is int


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_values_fill_in_any_form_or_bring_it_back_with_a_reason(data: st.DataObject) -> None:
    asked = data.draw(declared_forms())
    values = data.draw(submitted_values(asked))
    outcome = fill(asked, values)
    match outcome:
        case Filled(filled):
            assert set(filled) <= {field.field_name for field in asked.fields}
            assert {name for name, value in values.items() if not blank(value)} <= set(filled)
            for field in asked.fields:
                assert field.field_name in filled or not field.required
                value = values.get(field.field_name)
                if not blank(value):
                    assert same(field.field_type, value, filled[field.field_name])
        case Refused(again):
            assert again.response
            assert again != asked
            assert [replace(field, value=None, error=None) for field in again.fields] == [
                replace(field, value=None, error=None) for field in asked.fields
            ]
            assert any(field.error for field in again.fields) or set(values) - {f.field_name for f in asked.fields}
            for field in again.fields:
                typed = values.get(field.field_name)
                if not blank(typed) and not is_secret(field.field_name):
                    assert same(field.field_type, typed, field.value)


@settings(max_examples=80, deadline=None)
@given(answered_forms())
def test_values_that_fit_are_taken_as_they_are(case: tuple[Form, dict[str, Any]]) -> None:
    asked, values = case
    outcome = fill(asked, values)
    assert outcome == Filled(values)
    assert isinstance(outcome, Filled)
    assert {name: type(value) for name, value in outcome.values.items()} == {
        name: type(value) for name, value in values.items()
    }
    assert fill(asked, outcome.values) == outcome


@settings(max_examples=80, deadline=None)
@given(answered_forms(), st.data())
def test_a_form_that_came_back_needs_only_what_was_wrong(
    case: tuple[Form, dict[str, Any]], data: st.DataObject
) -> None:
    asked, values = case
    wrong = data.draw(st.sampled_from(sorted(values)))
    first = fill(asked, {**values, wrong: {"not": "a value"}})
    assert isinstance(first, Refused)
    assert [field.field_name for field in first.form.fields if field.error] == [wrong]
    assert fill(first.form, {wrong: values[wrong]}) == Filled(values)


def blank(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def same(kind: FieldType, typed: Any, kept: Any) -> bool:
    """Whether `kept` says what was typed: itself, or the same thing in the words of the field."""
    if kept == typed or (isinstance(typed, float) and not math.isfinite(typed)):
        return True
    match kind:
        case "number":
            same_number: bool = float(typed) == kept
            return same_number
        case "boolean":
            return spelled(typed) in (("yes", "true") if kept else ("no", "false"))
        case "select":
            return spelled(typed) == spelled(kept)
        case "multiselect":
            chosen = [spelled(item) for item in kept]
            several = typed.split(",") if isinstance(typed, str) else typed
            return chosen in ([spelled(typed)], [spelled(item) for item in several if spelled(item)])
    return False


def spelled(value: Any) -> str:
    whole = isinstance(value, float) and math.isfinite(value) and value.is_integer()
    return str(int(value) if whole else value).strip().casefold()
