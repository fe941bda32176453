"""Tools as the model sees them, derived once for each graph: a model derives them anew at every turn.

Every turn carries them, so they leave out what tells a model nothing. The tools check their arguments as before.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

Schema = dict[str, Any]

_NULL: Final[Schema] = {"type": "null"}


class ToolSchemas(AgentMiddleware[Any, Any, Any]):
    """Hands the model the schemas in place of the tools. Comes last: the others know tools by what they are."""

    def __init__(self) -> None:
        super().__init__()
        self._schemas: dict[str, tuple[BaseTool, Schema]] = {}

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        tools: list[BaseTool | Schema] = [
            tool if isinstance(tool, dict) else self._schema(tool) for tool in request.tools
        ]
        return await handler(request.override(tools=tools) if tools else request)

    def _schema(self, tool: BaseTool) -> Schema:
        known = self._schemas.get(tool.name)
        if known is None or known[0] is not tool:
            known = self._schemas[tool.name] = (tool, _derived(tool))
        return known[1]


def lean(schema: Schema) -> Schema:
    """The schema without empty defaults, without the null that says the same as leaving an argument out, and without
    the ban on arguments that it does not name."""
    return {
        key: _lean_value(key, value, schema.get("required", ()))
        for key, value in schema.items()
        if (key, value) != ("additionalProperties", False)
    }


def _derived(tool: BaseTool) -> Schema:
    schema = convert_to_openai_tool(tool)
    return {**schema, "function": {**schema["function"], "parameters": lean(schema["function"]["parameters"])}}


def _lean_value(key: str, value: Any, required: Sequence[str]) -> Any:
    match key, value:
        case "properties", dict():
            return {name: inner if name in required else _optional(inner) for name, inner in _each(value)}
        case "$defs", dict():
            return dict(_each(value))
        case "items", dict():
            return lean(value)
        case "anyOf", list():
            return [lean(alternative) for alternative in value]
        case _:
            return value


def _each(schemas: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((name, lean(inner) if isinstance(inner, dict) else inner) for name, inner in schemas.items())


def _optional(schema: Any) -> Any:
    match schema:
        case {"default": None, "anyOf": [*alternatives], **rest}:
            kept = [alternative for alternative in alternatives if alternative != _NULL] or alternatives
            return {**kept[0], **rest} if len(kept) == 1 else {**rest, "anyOf": kept}
        case {"default": None | "", **rest}:
            return rest
        case _:
            return schema
