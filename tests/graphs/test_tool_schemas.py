"""The model is told of tools by schemas that were derived once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from ai_platform_engineering.utils.graphs import tool_schemas
from ai_platform_engineering.utils.graphs.ask_tool import ask_tool
from ai_platform_engineering.utils.llm.scripted import Cue, ScriptedChatModel, Turn
from tests.runs.graphs import agent, context


def greeting(words: str) -> StructuredTool:
    async def greet(name: str) -> str:
        return f"{words}, {name}"

    return StructuredTool.from_function(coroutine=greet, name="greet", description=f"Says {words}.")


async def test_each_tool_is_derived_once_and_the_model_knows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    derived: list[Any] = []
    derive = tool_schemas.convert_to_openai_tool

    def counting(tool: Any) -> dict[str, Any]:
        derived.append(tool.name)
        return derive(tool)

    monkeypatch.setattr(tool_schemas, "convert_to_openai_tool", counting)
    cues: list[Cue] = []

    def part(cue: Cue) -> Turn:
        cues.append(cue)
        return Turn("", [("greet", {"name": "Alex"})]) if not cue.turn else Turn(str(cue.messages[-1].text))

    graph = agent("jira", ScriptedChatModel(part=part), [greeting("Hello")])
    for _ in range(2):
        state = await graph.ainvoke({"messages": [HumanMessage("hi")]}, context=context())
        assert state["messages"][-1].text == "Hello, Alex"
    assert {"greet", "request_user_input"} <= set(cues[-1].tools)
    assert len(derived) == len(set(derived))


def test_another_tool_of_the_same_name_is_another_schema() -> None:
    schemas = tool_schemas.ToolSchemas()
    first, second = greeting("Hello"), greeting("Good morning")
    assert schemas._schema(first) is schemas._schema(first)
    assert "Good morning" in str(schemas._schema(second))


NULL = {"type": "null"}
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({"anyOf": [TEXT, NULL], "default": None, "description": "Which."}, {**TEXT, "description": "Which."}),
        ({"anyOf": [TEXT, {"type": "number"}, NULL], "default": None}, {"anyOf": [TEXT, {"type": "number"}]}),
        ({"anyOf": [NULL], "default": None}, NULL),
        ({"type": "string", "default": ""}, TEXT),
        ({"items": {"properties": {"a": {**TEXT, "default": ""}}}}, {"items": {"properties": {"a": TEXT}}}),
        # A default that means something, and a null that is not the same as nothing.
        ({"type": "boolean", "default": False},) * 2,
        ({"type": "integer", "default": 0},) * 2,
        ({"anyOf": [TEXT, NULL], "default": "all"},) * 2,
        ({"anyOf": [TEXT, NULL]},) * 2,
        (True, True),
    ],
)
def test_what_tells_a_model_nothing_is_left_out(told: Any, kept: Any) -> None:
    assert tool_schemas.lean({"type": "object", "properties": {"default": told}}) == {
        "type": "object",
        "properties": {"default": kept},
    }


def test_an_argument_that_has_to_be_given_keeps_its_null() -> None:
    schema = {"properties": {"owner": {"anyOf": [TEXT, NULL], "default": None}}, "required": ["owner"]}
    assert tool_schemas.lean(schema) == schema


def test_a_form_is_told_in_few_words() -> None:
    told = tool_schemas.ToolSchemas()._schema(ask_tool("jira"))["function"]
    field = told["parameters"]["properties"]["fields"]["items"]
    assert field["required"] == ["name"]
    assert field["properties"]["options"]["items"] == TEXT
    assert "null" not in str(told)
    assert len(json.dumps(told)) < 1300
