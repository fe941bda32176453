"""The model gets schemas of tools that were converted once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import StructuredTool

from ai_platform_engineering.graphs import tool_schemas
from ai_platform_engineering.graphs.ask_tool import ask_tool
from ai_platform_engineering.llm.scripted import ModelInput, ScriptedChatModel, Turn
from ai_platform_engineering.mcp.tools import MODEL_NAME
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
    cues: list[ModelInput] = []

    def part(cue: ModelInput) -> Turn:
        cues.append(cue)
        return Turn("", [("greet", {"name": "Alex"})]) if not cue.turn else Turn(str(cue.messages[-1].text))

    graph = agent("jira", ScriptedChatModel(script=part), [greeting("Hello")])
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
    ("schema", "kept"),
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
def test_what_tells_a_model_nothing_is_left_out(schema: Any, kept: Any) -> None:
    assert tool_schemas.lean({"type": "object", "properties": {"default": schema}}) == {
        "type": "object",
        "properties": {"default": kept},
    }


def test_an_argument_that_has_to_be_given_keeps_its_null() -> None:
    schema = {"properties": {"owner": {"anyOf": [TEXT, NULL], "default": None}}, "required": ["owner"]}
    assert tool_schemas.lean(schema) == schema


def test_the_schema_of_a_form_is_short() -> None:
    schema = tool_schemas.ToolSchemas()._schema(ask_tool("jira"))["function"]
    field = schema["parameters"]["properties"]["fields"]["items"]
    assert field["required"] == ["name"]
    assert field["properties"]["options"]["items"] == TEXT
    assert "null" not in str(schema)
    assert len(json.dumps(schema)) < 1300


def named(name: str, model_name: str | None = None) -> StructuredTool:
    async def act(what: str = "") -> str:
        return f"{name}: {what}"

    metadata = {MODEL_NAME: model_name} if model_name else None
    return StructuredTool.from_function(coroutine=act, name=name, description="Acts.", metadata=metadata)


async def test_a_tool_has_its_own_name_in_the_graph_and_another_for_the_model() -> None:
    cues: list[ModelInput] = []

    def part(cue: ModelInput) -> Turn:
        cues.append(cue)
        return Turn("", [("list_pods", {"what": "a"}), ("plain", {})]) if not cue.turn else Turn("Done.")

    graph = agent("jira", ScriptedChatModel(script=part), [named("list.pods", "list_pods"), named("plain")])
    gone = {"id": "z", "name": "gone.tool", "args": {}, "type": "tool_call"}
    earlier = [
        HumanMessage("before"),
        AIMessage("", tool_calls=[gone]),
        ToolMessage("Gone.", tool_call_id="z", name="gone.tool"),
        ToolMessage("Nameless.", tool_call_id="z"),
    ]
    state = await graph.ainvoke({"messages": [*earlier, HumanMessage("go")]}, context=context())

    assert {"list_pods", "plain"} <= set(cues[0].tools)
    called, first, second, _ = state["messages"][5:]
    assert [call["name"] for call in called.tool_calls] == ["list.pods", "plain"]
    assert [(result.name, result.text) for result in (first, second)] == [
        ("list.pods", "list.pods: a"),
        ("plain", "plain: "),
    ]
    sent = [
        [call["name"] for call in message.tool_calls] if isinstance(message, AIMessage) else message.name
        for message in cues[-1].messages[2:]
    ]
    assert sent == [["gone_tool"], "gone_tool", None, ["list_pods", "plain"], "list_pods", "plain"]
    assert called.id == cues[-1].messages[-3].id


def test_a_schema_has_the_models_name_and_lean_arguments() -> None:
    schema = tool_schemas.ToolSchemas()._schema(named("list.pods", "list_pods"))
    assert schema == {
        "type": "function",
        "function": {
            "name": "list_pods",
            "description": "Acts.",
            "parameters": {"type": "object", "properties": {"what": {"type": "string"}}},
        },
    }


@pytest.mark.parametrize(
    ("schema", "kept"),
    [
        ({"type": "object", "additionalProperties": False}, {"type": "object"}),
        ({"additionalProperties": True}, {"additionalProperties": True}),
        ({"additionalProperties": TEXT}, {"additionalProperties": TEXT}),
        ({"other": False}, {"other": False}),
        (
            {"$defs": {"A": {"additionalProperties": False, "properties": {"a": {**TEXT, "default": None}}}}},
            {"$defs": {"A": {"properties": {"a": TEXT}}}},
        ),
        ({"$defs": {"A": {**TEXT, "default": ""}}}, {"$defs": {"A": {**TEXT, "default": ""}}}),
        ({"anyOf": [{"additionalProperties": False}, TEXT]}, {"anyOf": [{}, TEXT]}),
        ({"items": [TEXT], "anyOf": {}, "properties": [], "$defs": 1},) * 2,
    ],
)
def test_schemas_inside_of_others_are_made_lean_too(schema: Any, kept: Any) -> None:
    assert tool_schemas.lean(schema) == kept


@pytest.mark.parametrize("tools", [[], [named("plain")], [{"name": "own", "parameters": {}}]])
async def test_a_turn_is_left_alone_where_nothing_has_another_name(tools: list[Any]) -> None:
    requests: list[ModelRequest[Any]] = []
    response: ModelResponse[Any] = ModelResponse(result=[AIMessage("Done.")])

    async def handler(request: ModelRequest[Any]) -> ModelResponse[Any]:
        requests.append(request)
        return response

    schemas = tool_schemas.ToolSchemas()
    call = {"id": "z", "name": "gone.tool", "args": {"a": 1}, "type": "tool_call"}
    old = [
        HumanMessage("q"),
        AIMessage("", tool_calls=[call], id="m"),
        ToolMessage("r", tool_call_id="z", name="plain"),
    ]
    for messages in (old[:1], old):
        request: ModelRequest[Any] = ModelRequest(model=ScriptedChatModel(script=[]), messages=[*messages], tools=tools)
        assert await schemas.awrap_model_call(request, handler) is response
        if messages == old[:1]:
            assert requests[-1].messages is request.messages
    sent = requests[-1]
    assert all(isinstance(tool, dict) for tool in sent.tools)
    assert len(sent.tools) == len(tools)
    _, called, result = sent.messages
    assert isinstance(called, AIMessage)
    assert (called.tool_calls, called.id) == ([{**call, "name": "gone_tool"}], "m")
    assert result is old[2]
