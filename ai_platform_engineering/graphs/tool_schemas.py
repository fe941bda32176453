"""Tool schemas for the model, converted once per graph: LangChain's models convert tools again in every turn.

The schemas are part of every request, so parts without information are removed. The tools still validate their
arguments against the full schema.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ai_platform_engineering.compat.agent_middleware import overridden
from ai_platform_engineering.mcp.names import provider_name
from ai_platform_engineering.mcp.tools import MODEL_NAME

Schema = dict[str, Any]
MessageT = TypeVar("MessageT", bound=BaseMessage)

_NULL: Final[Schema] = {"type": "null"}


class ToolSchemas(AgentMiddleware[Any, Any, Any]):
    """Replaces the tools of a request by their schemas. It must be inside middleware that expects tool objects.

    A tool whose name providers refuse gets another name for the model: in the request, its history and the response.
    """

    def __init__(self) -> None:
        super().__init__()
        self._schemas: dict[str, tuple[BaseTool, Schema, int]] = {}

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        tools: list[BaseTool | Schema] = [
            tool if isinstance(tool, dict) else self._schema(tool) for tool in request.tools
        ]
        own = {_model_name(tool): tool.name for tool in request.tools if isinstance(tool, BaseTool)}
        messages = _renamed_history(request.messages, {name: model for model, name in own.items()})
        if tools or messages is not request.messages:
            request = overridden(request, tools=tools, messages=messages)
        response = await handler(request)
        changed = {model: name for model, name in own.items() if model != name}
        return _renamed_response(response, changed) if changed else response

    def chars(self, tools: Iterable[BaseTool | Schema]) -> int:
        """The characters that the tools take in a prompt."""
        return sum(len(json.dumps(tool)) if isinstance(tool, dict) else self._known(tool)[2] for tool in tools)

    def _schema(self, tool: BaseTool) -> Schema:
        return self._known(tool)[1]

    def _known(self, tool: BaseTool) -> tuple[BaseTool, Schema, int]:
        known = self._schemas.get(tool.name)
        if known is None or known[0] is not tool:
            schema = _derived(tool)
            known = self._schemas[tool.name] = (tool, schema, len(json.dumps(schema)))
        return known


def lean(schema: Schema) -> Schema:
    """The schema without empty defaults, without null for optional arguments, and without
    `additionalProperties: false`."""
    return {
        key: _lean_value(key, value, schema.get("required", ()))
        for key, value in schema.items()
        if (key, value) != ("additionalProperties", False)
    }


def _derived(tool: BaseTool) -> Schema:
    schema = convert_to_openai_tool(tool)
    function = schema["function"]
    return {**schema, "function": {**function, "name": _model_name(tool), "parameters": lean(function["parameters"])}}


def _model_name(tool: BaseTool) -> str:
    return str((tool.metadata or {}).get(MODEL_NAME, tool.name))


def _renamed_response(response: ModelResponse[Any], names: Mapping[str, str]) -> ModelResponse[Any]:
    messages = [_with_names(message, lambda name: names.get(name, name)) for message in response.result]
    return replace(response, result=messages)


def _renamed_history(messages: list[AnyMessage], models: Mapping[str, str]) -> list[AnyMessage]:
    """The messages with the model's names for tools, also for tools that no longer exist; the same list object if
    nothing changes."""
    renames = {name: models.get(name) or provider_name(name) for name in _tool_names(messages)}
    if all(name == new for name, new in renames.items()):
        return messages
    return [_with_names(message, lambda name: renames.get(name, name)) for message in messages]


def _tool_names(messages: Iterable[AnyMessage]) -> set[str]:
    names: set[str] = set()
    for message in messages:
        # Every turn reads all messages, and `isinstance` takes longer, as their classes are abstract.
        if message.type == "ai":
            names.update(call["name"] for call in message.tool_calls)
        elif message.type == "tool" and message.name:
            names.add(message.name)
    return names


def _with_names(message: MessageT, rename: Callable[[str], str]) -> MessageT:
    if isinstance(message, AIMessage) and message.tool_calls:
        calls = [{**call, "name": rename(call["name"])} for call in message.tool_calls]
        return message if calls == message.tool_calls else message.model_copy(update={"tool_calls": calls})
    if isinstance(message, ToolMessage) and message.name and rename(message.name) != message.name:
        return message.model_copy(update={"name": rename(message.name)})
    return message


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
            others = [alternative for alternative in alternatives if alternative != _NULL] or alternatives
            return {**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}
        case {"default": None | "", **rest}:
            return rest
        case _:
            return schema
