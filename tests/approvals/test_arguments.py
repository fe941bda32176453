from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.forms.arguments import (
    MAX_LENGTH,
    NOTED_LENGTH,
    ShownInPartError,
    can_be_shown,
    edited_arguments,
    in_words,
    masked_arguments,
    noted_arguments,
)
from tests.approvals.test_grants import BUDGET, values

SCHEMA = {
    "properties": {
        "a": {"type": "string"},
        "b": {"type": ["string", "null"]},
        "c": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "d": {},
        "e": True,
    }
}
ARGS = {
    "issue_key": "PAY-12",
    "apiToken": "hunter2-hunter2",
    "body": "x" * 5_000,
    "spec": {"replicas": 2, "password": "hunter2", "env": [{"name": "A", "access-key": "hunter2"}]},
    "url": "https://bob:hunter2@example.org/",
}


def test_secrets_are_masked_and_people_see_all_the_rest() -> None:
    shown = masked_arguments(ARGS)
    assert "hunter2" not in json.dumps(shown)
    assert shown["issue_key"] == "PAY-12"
    assert shown["body"] == ARGS["body"]
    assert shown["spec"] == {"replicas": 2, "password": "***", "env": [{"name": "A", "access-key": "***"}]}
    assert ARGS["apiToken"] == "hunter2-hunter2"


@pytest.mark.parametrize(
    ("name", "masked"),
    [
        ("key", False),
        ("project_key", False),
        ("secret_name", False),
        ("api_key", True),
        ("apiKey", True),
        ("private-key", True),
        ("GITHUB_TOKEN", True),
        ("client_secret", True),
        ("userPassword", True),
    ],
)
def test_names_that_say_secret(name: str, masked: bool) -> None:
    assert (masked_arguments({name: "something"})[name] == "***") is masked


def test_a_model_gets_the_beginning_of_long_values_with_their_length() -> None:
    assert noted_arguments(ARGS)["body"] == "x" * NOTED_LENGTH + f"… [{NOTED_LENGTH} of 5000 characters]"
    noted = noted_arguments({"items": list(range(5_000))})["items"]
    assert noted.startswith("[0, 1, 2, ")
    assert noted.endswith(f"… [{NOTED_LENGTH} of {len(json.dumps(list(range(5_000))))} characters]")


def test_more_than_people_can_be_shown_is_recognized() -> None:
    assert can_be_shown({"body": "x" * (MAX_LENGTH - 12)})
    assert not can_be_shown({"body": "x" * (MAX_LENGTH - 11)})


def test_only_what_is_given_in_an_edit_changes() -> None:
    assert edited_arguments(ARGS, {"issue_key": "PAY-13", "labels": ["new"]}, {}) == {
        **ARGS,
        "issue_key": "PAY-13",
        "labels": ["new"],
    }
    assert edited_arguments(ARGS, {}, {}) == ARGS


def test_what_comes_back_as_it_was_shown_means_what_was_behind_it() -> None:
    edit = json.loads(json.dumps(masked_arguments(ARGS)))
    assert edited_arguments(ARGS, edit, {}) == ARGS
    edit["spec"]["replicas"] = 3
    expected = {"replicas": 3, "password": "hunter2", "env": [{"name": "A", "access-key": "hunter2"}]}
    assert edited_arguments(ARGS, edit, {}) == {**ARGS, "spec": expected}


def test_none_takes_an_argument_away_unless_it_is_a_value() -> None:
    args = dict.fromkeys("abcdef", "x")
    assert edited_arguments(args, dict.fromkeys("abcdef"), SCHEMA) == {"b": None, "c": None}
    assert edited_arguments(args, {"a": None}, SCHEMA) == dict.fromkeys("bcdef", "x")


def test_a_value_that_was_hidden_can_be_given_anew() -> None:
    edit = {"apiToken": "other", "body": "short"}
    assert edited_arguments(ARGS, edit, {}) == {**ARGS, **edit}


@pytest.mark.parametrize(
    "edit",
    [
        {"apiToken": "*** "},
        {"url": "http://***@example.com/"},
        {"spec": {"password": "a***"}},
        {"spec": {"secret": "***"}},
        {"spec": {"env": [{"name": "B", "access-key": "***"}]}},
        {"spec": {"env": [{"name": "A", "access-key": "***"}, {"name": "B", "access-key": "***"}]}},
    ],
)
def test_a_hidden_value_changed_in_part_is_refused(edit: dict[str, Any]) -> None:
    with pytest.raises(ShownInPartError):
        edited_arguments(ARGS, edit, {})


def test_items_that_change_places_take_no_secret_of_another() -> None:
    args = {"users": [{"name": "a", "token": "1st"}, {"name": "b", "token": "2nd"}, {"name": "c"}]}
    first, second, third = masked_arguments(args)["users"]
    assert edited_arguments(args, {"users": [first, second, {"name": "d"}]}, {})["users"][:2] == args["users"][:2]
    with pytest.raises(ShownInPartError):
        edited_arguments(args, {"users": [second, first, third]}, {})


def test_stars_of_ones_own_are_only_stars() -> None:
    assert edited_arguments({"title": "plain"}, {"title": "*** new ***"}, {}) == {"title": "*** new ***"}


@BUDGET
@given(st.dictionaries(st.text(max_size=8), values, max_size=4))
def test_an_untouched_edit_changes_nothing(args: dict[str, Any]) -> None:
    assert edited_arguments(args, json.loads(json.dumps(masked_arguments(args))), {}) == args


def test_in_words() -> None:
    assert in_words({}) == ""
    assert in_words({"name": "web", "revision": 3, "prune": True}) == 'name="web", revision=3, prune=true'
    assert in_words({"zone": None, "name": "a\nb"}) == 'name="a\\nb" without zone'
    assert in_words({"zone": None, "token": None}) == "without zone, token"
    assert in_words({"token": "hunter2"}) == 'token="***"'
    assert in_words(dict.fromkeys("abcdefgh", 1)) == "a=1, b=1, c=1, d=1, e=1, f=1, 2 more"
    assert len(in_words({"body": "x" * 5_000})) < 100
