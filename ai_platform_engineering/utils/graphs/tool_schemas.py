"""Tools as the model sees them, derived once for each graph: a model derives them anew at every turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

Schema = dict[str, Any]


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
            known = self._schemas[tool.name] = (tool, convert_to_openai_tool(tool))
        return known[1]
