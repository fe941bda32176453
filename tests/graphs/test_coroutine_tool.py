from __future__ import annotations

import typing

import pytest
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from ai_platform_engineering.graphs.coroutine_tool import CoroutineTool
from ai_platform_engineering.mcp.tools import McpTool


async def double(text: str, times: int = 2) -> str:
    """Repeat a text."""
    if not text:
        raise ToolException("There is no text.")
    return text * times


async def test_it_takes_the_place_of_a_structured_tool() -> None:
    original = StructuredTool.from_function(coroutine=double, metadata={"read_only": True}, handle_tool_error=True)
    tool = CoroutineTool.of(original)
    assert dict(tool) == dict(original)
    assert tool.tool_call_schema.model_json_schema() == original.tool_call_schema.model_json_schema()
    for arguments in ({"text": "ab"}, {"text": "ab", "times": 3}, {"text": ""}):
        call = {"name": "double", "args": arguments, "id": "1", "type": "tool_call"}
        assert await tool.ainvoke(call) == await original.ainvoke(call)


@pytest.mark.parametrize("tool", [CoroutineTool, McpTool])
def test_langchain_has_no_annotations_to_evaluate(tool: type[BaseTool]) -> None:
    function = tool._arun
    assert function.__annotations__ == typing.get_type_hints(function)
