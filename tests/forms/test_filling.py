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
from ai_platform_engineering.forms.field_names import is_secret
from ai_platform_engineering.forms.filling import FilledForm, InvalidForm, fill, propose
from ai_platform_engineering.utils.a2a_common.codec.values import get_value, set_value
from tests.forms.declared import answered_forms, declared_forms, submitted_values


def form(*fields: FormField) -> Form:
    return Form("f1", "Create", fields, "A description", "I need a few details.", "github")


def taken(field: FormField, value: Any) -> Any:
    filled = fill(form(field), {field.field_name: value})
    assert isinstance(filled, FilledForm), filled
    return filled.values[field.field_name]


def refused(field: FormField, value: Any) -> str:
    outcome = fill(form(field), {field.field_name: value})
    assert isinstance(outcome, InvalidForm), outcome
    error = outcome.form.fields[0].error
    assert error is not None
    assert outcome.form.response == error
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
        (FormField("n", "number"), "9" * 400, int("9" * 400)),
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
        (FormField("size", "select", field_values=("Two words ", "b")), " two WORDS", "Two words "),
        (FormField("size", "select"), "anything", "anything"),
        (LABELS, ["feature", "bug"], ["Feature", "bug"]),
        (LABELS, "bug, feature", ["bug", "Feature"]),
        (LABELS, "a, b", ["a, b"]),
        (LABELS, ("bug",), ["bug"]),
        (replace(LABELS, required=False), [], []),
        (FormField("tags", "multiselect"), "x, y,", ["x", "y"]),
        (FormField("link", "url"), "https://example.com/a?b=c", "https://example.com/a?b=c"),
        (FormField("link", "url"), "HTTP://127.0.0.1:8000", "HTTP://127.0.0.1:8000"),
        (FormField("mail", "email"), "jane.doe+x@mail.example.com", "jane.doe+x@mail.example.com"),
        (FormField("name", rules=FieldRules(min_length=4, max_length=4, pattern="[a-z]+")), "demo", "demo"),
        (FormField("name", rules=FieldRules(pattern="[")), "demo", "demo"),
        (FormField("name", rules=FieldRules(pattern="a+")), "b" * 10_001, "b" * 10_001),
    ],
)
def test_a_value_that_fits_is_taken(field: FormField, value: Any, expected: Any) -> None:
    got = taken(field, value)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        (FormField("name"), 5, "text; “5” is not text"),
        (FormField("n", "number"), "abc", "a number; “abc” is not that"),
        (FormField("n", "number"), True, "a number; “True” is not that"),
        (FormField("n", "number"), math.nan, "a number; “nan” is not that"),
        (FormField("n", "number"), "1e999", "a number; “1e999” is not that"),
        (FormField("n", "number"), "9" * 401, f"a number; “{'9' * 119}…” is not that"),
        (FormField("n", "number"), "1_000", "a number; “1_000” is not that"),
        (
            FormField("n", "number"),
            "12345678901234567.5",
            "a number; “12345678901234567.5” has more digits than can be kept",
        ),
        (FormField("n", "number"), [1], "a number; “[1]” is not that"),
        (REPLICAS, 0, "a whole number from 1 to 5; “0” is not that"),
        (REPLICAS, 6, "a whole number from 1 to 5; “6” is not that"),
        (REPLICAS, 2.5, "a whole number from 1 to 5; “2.5” is not that"),
        (FormField("n", "number", rules=FieldRules(minimum=2.0)), 1, "a number of at least 2; “1” is not that"),
        (FormField("n", "number", rules=FieldRules(maximum=2.5)), 3, "a number of at most 2.5; “3” is not that"),
        (
            FormField("n", "number", rules=FieldRules(integer=True)),
            1.2345678901234567e19,
            "a whole number; “1.2345678901234567e+19” may have been rounded on its way: send it as text",
        ),
        (FormField("now", "boolean"), "maybe", "yes or no; “maybe” is not that"),
        (FormField("now", "boolean"), 1, "yes or no; “1” is not that"),
        (VISIBILITY, "secret", "one of public, Private; “secret” is not that"),
        (VISIBILITY, ["public"], "one of public, Private; “['public']” is not that"),
        (VISIBILITY, math.inf, "one of public, Private; “inf” is not that"),
        (FormField("size", "select", field_values=("ab", "AB")), "Ab", "one of ab, AB; “Ab” is not that"),
        (
            FormField("size", "select", field_values=tuple("abcdefghijklmnopqrst")),
            "x",
            f"one of {', '.join('abcdefghijklmnopqrst')}; “x” is not that",
        ),
        (
            FormField("size", "select", field_values=tuple("abcdefghijklmnopqrstuvw")),
            "x",
            f"one of {', '.join('abcdefghijklmnopqrst')} and 3 more; “x” is not that",
        ),
        (FormField("size", "select"), 5, "text; “5” is not that"),
        (FormField("tags", "multiselect"), ["x", 5], "texts with commas between them; “5” is not that"),
        (FormField("tags", "multiselect"), ["x", " "], "texts with commas between them; “” is not that"),
        (LABELS, "bug, new", "one or more of bug, Feature, a, b; “new” is not that"),
        (LABELS, [], "one or more of bug, Feature, a, b; an empty list is not that"),
        (replace(LABELS, required=False), {"bug": 1}, "any of bug, Feature, a, b; “{'bug': 1}” is not that"),
        *(
            (
                FormField("link", "url"),
                address,
                f"an address that begins with http:// or https://; “{address}” is not that",
            )
            for address in (
                "ftp://example.com",
                "https://",
                "https://exa mple.com",
                "https://[::1",
                "https://example.com:99999",
                "https://example.com:0",
                5,
            )
        ),
        *(
            (FormField("mail", "email"), address, f"an e-mail address like name@example.com; “{address}” is not that")
            for address in ("jane", "a@b@example.com", 5)
        ),
        (FormField("name", rules=FieldRules(min_length=2)), "a", "text of at least 2 characters; “a” has 1"),
        (FormField("name", rules=FieldRules(max_length=1)), "abc", "text of at most 1 character; “abc” has 3"),
        (
            FormField("name", rules=FieldRules(min_length=2, max_length=3)),
            "abcd",
            "text of 2 to 3 characters; “abcd” has 4",
        ),
        (
            FormField("name", rules=FieldRules(pattern="[a-z]+")),
            "demo1",
            "text that matches the pattern `[a-z]+`; “demo1” does not",
        ),
        (
            FormField("name", rules=FieldRules(pattern="a+")),
            "b" * 10_000,
            f"text that matches the pattern `a+`; “{'b' * 119}…” does not",
        ),
        (
            FormField("link", "url", rules=FieldRules(max_length=10)),
            "https://example.com",
            "an address that begins with http:// or https:// of at most 10 characters; “https://example.com” has 19",
        ),
        (
            FormField("apiToken", rules=FieldRules(min_length=9)),
            "hunter22",
            "text of at least 9 characters; what was given has 8",
        ),
    ],
)
def test_a_value_that_does_not_fit_is_refused_in_words(field: FormField, value: Any, sentence: str) -> None:
    assert refused(field, value) == f"`{field.field_name}` takes {sentence}."


@pytest.mark.parametrize("omitted", [{}, {"name": ""}, {"name": "  "}, {"name": None}])
def test_a_field_that_is_left_out_takes_what_is_proposed_then_the_default_then_nothing(omitted: dict[str, Any]) -> None:
    both = FormField("name", default_value="default", value="proposed")
    assert fill(form(both), omitted) == FilledForm({"name": "proposed"})
    assert fill(form(replace(both, value=None)), omitted) == FilledForm({"name": "default"})
    assert fill(form(FormField("name", required=False)), omitted) == FilledForm({})
    required = fill(form(FormField("name"), REPLICAS), omitted)
    assert isinstance(required, InvalidForm)
    assert required.form.response == (
        "`name` is required. `replicas` is required: it takes a whole number from 1 to 5."
    )


def test_what_is_proposed_is_checked_and_converted_like_everything_else() -> None:
    replicas = replace(REPLICAS, value="3")
    assert fill(form(replicas), {}) == FilledForm({"replicas": 3})
    assert isinstance(fill(form(replace(replicas, value=9)), {}), InvalidForm)


def test_a_default_that_does_not_fit_is_none() -> None:
    team = FormField("team", "select", field_values=("a", "b"), default_value="c", required=False)
    assert fill(form(team), {}) == FilledForm({})
    assert isinstance(fill(form(replace(team, required=True)), {}), InvalidForm)


def test_what_does_not_fit_can_be_taken_back() -> None:
    first = fill(form(replace(REPLICAS, required=False)), {"replicas": "many"})
    assert isinstance(first, InvalidForm)
    assert isinstance(fill(first.form, {}), InvalidForm)
    assert fill(first.form, {"replicas": ""}) == FilledForm({})
    again = fill(form(*first.form.fields, FormField("name")), {"replicas": ""})
    assert isinstance(again, InvalidForm)
    assert again.form.fields[0].value is None


def test_a_field_that_is_left_empty_keeps_what_is_proposed() -> None:
    again = fill(form(replace(REPLICAS, value=3), FormField("name")), {"replicas": ""})
    assert isinstance(again, InvalidForm)
    assert again.form.fields[0].value == 3


def test_a_form_comes_back_with_what_was_typed_and_only_what_is_wrong_now() -> None:
    asked = form(FormField("name"), VISIBILITY, REPLICAS, FormField("note", required=False))
    first = fill(asked, {"name": "demo", "visibility": "PUBLIC", "replicas": 9})
    assert isinstance(first, InvalidForm)
    assert [field.value for field in first.form.fields] == ["demo", "public", 9, None]
    assert [field.error is None for field in first.form.fields] == [True, True, False, True]
    second = fill(first.form, {"replicas": 2, "name": 7})
    assert isinstance(second, InvalidForm)
    assert [field.value for field in second.form.fields] == [7, "public", 2, None]
    assert [field.error is None for field in second.form.fields] == [False, True, True, True]
    assert fill(second.form, {"name": "demo"}) == FilledForm({"name": "demo", "visibility": "public", "replicas": 2})
    assert replace(second.form, fields=asked.fields, response=asked.response) == asked


def test_a_name_that_is_no_field_is_named_with_its_value_and_the_nearest_one() -> None:
    outcome = fill(form(FormField("name"), FormField("team", required=False)), {"name": "demo", "taem": "shop"})
    assert isinstance(outcome, InvalidForm)
    assert outcome.form.response == "There is no field `taem` (with “shop”); did you mean `team`?"
    assert outcome.form.fields[0].value == "demo"
    far = fill(form(FormField("name")), {"name": "demo", "zzz": 1})
    assert isinstance(far, InvalidForm)
    assert far.form.response == "There is no field `zzz` (with “1”); the fields are `name`."
    none = fill(form(), {"x" * 500: None})
    assert isinstance(none, InvalidForm)
    assert none.form.response == f"There is no field `{'x' * 79}…`; the form has no fields."


@pytest.mark.parametrize(("length", "hint"), [(80, "did you mean `{0}`?"), (81, "the fields are `{0}`, `team`.")])
def test_a_name_that_is_too_long_to_compare_gets_all_names(length: int, hint: str) -> None:
    name = "x" * 78
    outcome = fill(form(FormField(name, required=False), FormField("team", required=False)), {"x" * length: ""})
    assert isinstance(outcome, InvalidForm)
    assert outcome.form.response.endswith(f"; {hint.format(name)}")


def test_a_credential_is_neither_repeated_nor_kept() -> None:
    asked = form(FormField("name"), FormField("apiToken", rules=FieldRules(min_length=9)))
    for values in ({"apiToken": "hunter22"}, {"apiToken": "hunter2222"}, {"name": "demo", "password": "hunter22"}):
        outcome = fill(asked, values)
        assert isinstance(outcome, InvalidForm)
        assert "hunter22" not in str(outcome)
    good = fill(asked, {"apiToken": "hunter2222"})
    assert isinstance(good, InvalidForm)
    assert good.form.fields[1].error is None
    assert good.form.response == "`name` is required. Please enter `apiToken` again: it is not kept."
    proposed = fill(form(FormField("apiToken", default_value="hunter2222"), FormField("name")), {})
    assert isinstance(proposed, InvalidForm)
    assert proposed.form.response == "`name` is required."
    assert fill(good.form, {"name": "demo", "apiToken": "hunter2222"}) == FilledForm(
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
    assert isinstance(outcome, InvalidForm)
    assert [field.value for field in outcome.form.fields] == ["nan", [{"x": "inf"}]]


def test_of_two_fields_with_one_name_the_first_counts() -> None:
    twice = form(FormField("n", "number"), FormField("n", "boolean"))
    assert fill(twice, {"n": 3}) == FilledForm({"n": 3})
    outcome = fill(twice, {"n": "x"})
    assert isinstance(outcome, InvalidForm)
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
        case FilledForm(filled):
            assert set(filled) <= {field.field_name for field in asked.fields}
            assert {name for name, value in values.items() if not blank(value)} <= set(filled)
            for field in asked.fields:
                assert field.field_name in filled or not field.required
                value = values.get(field.field_name)
                if not blank(value):
                    assert same(field.field_type, value, filled[field.field_name])
        case InvalidForm(again):
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
    assert outcome == FilledForm(values)
    assert isinstance(outcome, FilledForm)
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
    assert isinstance(first, InvalidForm)
    assert [field.field_name for field in first.form.fields if field.error] == [wrong]
    assert fill(first.form, {wrong: values[wrong]}) == FilledForm(values)


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
