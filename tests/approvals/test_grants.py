from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ai_platform_engineering.approvals.effects import EFFECTS
from ai_platform_engineering.approvals.grants import (
    add_grants,
    argument_order,
    covers,
    leading_arguments,
    same_value,
)
from tests.approvals.tools import grant_for

BUDGET = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])

SCHEMA = {
    "type": "object",
    "properties": {"dry_run": {}, "namespace": {}, "name": {}, "revision": {}},
    "required": ["name", "namespace"],
}
OPTIONAL = {"type": "object", "properties": {"namespace": {}, "name": {}, "force": {}}}

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6
)
names = st.sampled_from(["name", "namespace", "dry_run", "revision", "other"])
calls = st.dictionaries(names, values, max_size=5)
schemas = st.builds(
    lambda properties, required: {"properties": {name: {} for name in properties}, "required": required},
    st.lists(names, unique=True),
    st.lists(names, unique=True),
)


def test_required_arguments_come_first_in_the_order_of_the_schema() -> None:
    assert argument_order(SCHEMA) == ["namespace", "name", "dry_run", "revision"]
    assert argument_order(SCHEMA, ["zone", "name"]) == ["namespace", "name", "dry_run", "revision", "zone"]
    assert argument_order({"properties": None, "required": "x"}) == []


@pytest.mark.parametrize(
    ("schema", "args", "leading"),
    [
        (SCHEMA, {"dry_run": True, "name": "web", "namespace": "prod"}, {"namespace": "prod"}),
        (OPTIONAL, {"force": True, "name": "web"}, {"namespace": None, "name": "web"}),
        (OPTIONAL, {"force": False}, {"namespace": None, "name": None, "force": False}),
        (OPTIONAL, {}, {"namespace": None, "name": None, "force": None}),
        ({"type": "object"}, {"anything": 1, "else": 2}, {"anything": 1}),
        ({"type": "object"}, {}, {}),
    ],
)
def test_the_leading_argument(schema: dict[str, Any], args: dict[str, Any], leading: dict[str, Any]) -> None:
    assert leading_arguments(args, schema) == leading


def test_a_grant_is_for_one_agent_one_tool_and_one_leading_argument() -> None:
    grant = grant_for("argocd", "sync", {"name": "web", "namespace": "prod", "revision": 1}, SCHEMA)
    assert grant == {"agent": "argocd", "tool": "sync", "arguments": {"namespace": "prod"}, "effect": "destructive"}
    assert covers(grant, "argocd", "sync", {"namespace": "prod", "name": "shop", "dry_run": True}, "destructive")
    assert not covers(grant, "argocd", "sync", {"namespace": "test", "name": "web"}, "destructive")
    assert not covers(grant, "argocd", "sync", {"namespace": "PROD"}, "destructive")
    assert not covers(grant, "argocd", "sync", {"name": "prod"}, "destructive")
    assert not covers(grant, "argocd", "sync_all", {"namespace": "prod"}, "destructive")
    assert not covers(grant, "jira", "sync", {"namespace": "prod"}, "destructive")


def test_what_came_before_the_leading_argument_must_stay_away() -> None:
    grant = grant_for("argocd", "sync", {"name": "web"}, OPTIONAL)
    assert covers(grant, "argocd", "sync", {"name": "web", "force": True}, "destructive")
    assert covers(grant, "argocd", "sync", {"name": "web", "namespace": None}, "destructive")
    assert not covers(grant, "argocd", "sync", {"name": "web", "namespace": "prod"}, "destructive")
    nothing = grant_for("argocd", "sync", {}, OPTIONAL)
    assert covers(nothing, "argocd", "sync", {}, "destructive")
    assert not covers(nothing, "argocd", "sync", {"force": True}, "destructive")


def test_a_grant_covers_no_call_with_a_more_severe_effect() -> None:
    grant = {"agent": "argocd", "tool": "sync", "arguments": {"name": "web"}, "effect": "write"}
    assert [effect for effect in EFFECTS if covers(grant, "argocd", "sync", {"name": "web"}, effect)] == [
        "read",
        "write",
    ]
    for unknown in (None, "everything", 3):
        assert not covers({**grant, "effect": unknown}, "argocd", "sync", {"name": "web"}, "read")


def test_a_tool_without_arguments_is_covered_whole() -> None:
    grant = grant_for("argocd", "restart", {}, {"type": "object", "properties": {}})
    assert covers(grant, "argocd", "restart", {}, "destructive")


@pytest.mark.parametrize(
    "no_grant",
    [
        {},
        {"agent": "a", "tool": "t"},
        {"agent": "a", "tool": "t", "arguments": None},
        {"agent": "a", "tool": "t", "arguments": []},
        {"tool": "t", "arguments": {}},
    ],
)
def test_what_is_no_grant_covers_nothing(no_grant: dict[str, Any]) -> None:
    assert not covers(no_grant, "a", "t", {}, "destructive")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (1, "1", False),
        ("", None, False),
        ([1, [2]], [1.0, [2.0]], True),
        ([1], [True], False),
        ({"a": 1, "b": 2}, {"b": 2.0, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
        ([], {}, False),
        (2**53 + 1, float(2**53), False),
    ],
)
def test_values_are_compared_as_json(one: Any, other: Any, same: bool) -> None:
    assert same_value(one, other) is same
    assert same_value(other, one) is same


@BUDGET
@given(calls, schemas)
def test_a_grant_covers_the_call_it_was_made_for_and_survives_json(
    args: dict[str, Any], schema: dict[str, Any]
) -> None:
    grant = json.loads(json.dumps(grant_for("a", "t", args, schema)))
    assert covers(grant, "a", "t", args, "destructive")
    assert not covers(grant, "a", "t2", args, "destructive")
    assert not covers(grant, "b", "t", args, "destructive")


@BUDGET
@given(calls, calls, schemas)
def test_a_grant_covers_another_call_only_if_both_begin_alike(
    args: dict[str, Any], other: dict[str, Any], schema: dict[str, Any]
) -> None:
    order = argument_order(schema, args)
    first = next((index for index, name in enumerate(order) if args.get(name) is not None), len(order) - 1)
    alike = all(same_value(args.get(name), other.get(name)) for name in order[: first + 1])
    assert covers(grant_for("a", "t", args, schema), "a", "t", other, "destructive") == alike


@BUDGET
@given(st.lists(st.builds(grant_for, st.sampled_from("ab"), st.sampled_from("tu"), calls, schemas), max_size=6))
def test_grants_are_added_without_doubles_in_any_grouping(grants: list[dict[str, Any]]) -> None:
    whole = add_grants([], grants)
    assert add_grants(whole, grants) == whole
    assert add_grants(add_grants(None, grants[:2]), grants[2:]) == whole
    assert add_grants(whole, None) == whole
    assert all(any(same_value(grant, kept) for kept in whole) for grant in grants)
    assert not any(same_value(one, other) for index, one in enumerate(whole) for other in whole[:index])
