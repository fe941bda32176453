"""The model is told of tools by schemas that were derived once."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from ai_platform_engineering.utils.graphs import tool_schemas
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
