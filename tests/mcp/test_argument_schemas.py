"""Names and schemas of tools as every provider takes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.mcp.argument_schemas import NotAnObjectError, argument_schema
from ai_platform_engineering.mcp.names import GRAPH_TOOLS, model_names
from tests.llm.openai_rules import NAME, refusal

TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, {"type": "object", "properties": {}}),
        (
            {"$schema": "x", "title": "t", "type": ["object", "null"], "properties": {"a": TEXT}, "required": ["a"]},
            {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
        ),
        (
            {"type": "object", "properties": {"a": True, "b": {"type": "array"}}, "additionalProperties": False},
            {
                "type": "object",
                "properties": {"a": {}, "b": {"type": "array", "items": {}}},
                "additionalProperties": False,
            },
        ),
        (
            {
                "properties": {"a": TEXT},
                "required": ["a"],
                "additionalProperties": False,
                "anyOf": [
                    {"properties": {"b": TEXT, "c": TEXT}, "required": ["b", "c"]},
                    {"properties": {"b": NUMBER}, "required": ["b"]},
                ],
            },
            {
                "type": "object",
                "properties": {"a": TEXT, "b": {"anyOf": [TEXT, NUMBER]}, "c": TEXT},
                "required": ["a", "b"],
            },
        ),
        (
            {"allOf": [{"$ref": "#/definitions/base"}, {"properties": {"b": NUMBER}, "required": ["b"]}], "not": {}}
            | {"definitions": {"base": {"properties": {"a": TEXT}, "required": ["a"]}}},
            {"type": "object", "properties": {"a": TEXT, "b": NUMBER}, "required": ["a", "b"]},
        ),
        (
            {"properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "other.json"}, "c": {"$ref": "#/nowhere"}}},
            {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}},
        ),
    ],
)
def test_a_schema_is_one_object_without_references(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert argument_schema(schema) == expected
    function = {"name": "f", "parameters": argument_schema(schema)}
    assert refusal({"tools": [{"function": function}], "messages": []}) is None


def test_a_definition_that_refers_to_itself_ends() -> None:
    node = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
    schema = argument_schema({"properties": {"tree": {"$ref": "#/$defs/node"}}, "$defs": {"node": node}})
    assert schema["properties"]["tree"]["properties"]["children"]["items"] == {"type": "object"}


def test_definitions_that_multiply_are_cut() -> None:
    definitions = {
        f"d{level}": {"properties": {side: {"$ref": f"#/$defs/d{level + 1}"} for side in "abcd"}} for level in range(12)
    }
    assert len(str(argument_schema({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}))) < 1_000_000


def test_arguments_that_are_no_object_are_refused() -> None:
    with pytest.raises(NotAnObjectError):
        argument_schema({"type": "array", "items": TEXT})


@given(st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=12))
def test_every_tool_has_a_name_of_its_own_that_providers_take(names: list[str]) -> None:
    models = model_names(dict.fromkeys(names, "server"))
    assert models.keys() == set(names)
    assert len(set(models.values())) == len(names)
    assert all(NAME.fullmatch(model) for model in models.values())
    assert all(models[name] == name for name in names if NAME.fullmatch(name) and name not in {"task", "write_todos"})
    assert not {models[name] for name in names if name not in GRAPH_TOOLS} & GRAPH_TOOLS


def test_a_name_of_the_supervisors_own_tools_is_another_for_the_model() -> None:
    assert model_names({"task": "github", "list.apps": "github"}) == {"task": "github_task", "list.apps": "list_apps"}
