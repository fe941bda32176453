"""Hypothesis strategies for forms as they are declared, and for what people send in reply."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ai_platform_engineering.events import FieldRules, FieldType, Form, FormField
from tests.strategies import json_values

NAMES = ["name", "replicas", "Team", "dry run", "issue-key", "api_token", "note", "url"]
TYPES: list[FieldType] = ["text", "multiline", "number", "boolean", "select", "multiselect", "url", "email"]
words = st.sampled_from(["demo", "Demo", "a, b", "yes", "no", "3", "2.50", "public", "https://example.com", "a@b.co"])
near_values = words | st.integers(-3, 9) | st.floats() | st.booleans() | st.none() | st.just("") | st.lists(words)
values = near_values | json_values
rules = st.none() | st.builds(
    FieldRules,
    minimum=st.none() | st.integers(-2, 3),
    maximum=st.none() | st.integers(2, 9),
    integer=st.booleans(),
    min_length=st.none() | st.integers(0, 3),
    max_length=st.none() | st.integers(2, 30),
    pattern=st.none() | st.sampled_from(["[a-z]+", "(", ".*", "[[a]"]),
)


def fields(name: str) -> st.SearchStrategy[FormField]:
    return st.builds(
        FormField,
        field_name=st.just(name),
        field_type=st.sampled_from(TYPES),
        field_values=st.none() | st.lists(words, max_size=4).map(tuple),
        default_value=st.none() | values,
        required=st.booleans(),
        value=st.none() | values,
        rules=rules,
    )


@st.composite
def declared_forms(draw: st.DrawFn, form_id: str = "f1", title: str = "Create") -> Form:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    return Form(form_id, title, tuple(draw(fields(name)) for name in names), "What it is for", "I need details.")


@st.composite
def submitted_values(draw: st.DrawFn, form: Form) -> dict[str, Any]:
    names = st.sampled_from([*(field.field_name for field in form.fields), "stranger"])
    return draw(st.dictionaries(names, values, max_size=5))


_FITTING: dict[FieldType, st.SearchStrategy[Any]] = {
    "text": st.text(min_size=1).filter(str.strip),
    "multiline": st.text(min_size=1).filter(str.strip),
    "number": st.integers() | st.floats(allow_nan=False, allow_infinity=False).filter(lambda n: not n.is_integer()),
    "boolean": st.booleans(),
    "select": st.sampled_from(["public", "private"]),
    "multiselect": st.lists(st.sampled_from(["public", "private"]), min_size=1),
    "url": st.sampled_from(["https://example.com/x", "http://127.0.0.1:80"]),
    "email": st.sampled_from(["jane@example.com", "a.b+c@mail.example.org"]),
}


@st.composite
def answered_forms(draw: st.DrawFn) -> tuple[Form, dict[str, Any]]:
    """A form, and a value of its own type for every field."""
    names = draw(st.lists(st.sampled_from(["name", "replicas", "Team", "dry run", "note"]), min_size=1, unique=True))
    kinds = {name: draw(st.sampled_from(TYPES)) for name in names}
    declared = tuple(
        FormField(name, kind, field_values=("public", "private"), required=draw(st.booleans()))
        for name, kind in kinds.items()
    )
    return Form("f1", "Create", declared), {name: draw(_FITTING[kind]) for name, kind in kinds.items()}
