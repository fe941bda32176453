"""Tools with the metadata of MCP servers' tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from mcp.types import Tool, ToolAnnotations

from ai_platform_engineering.approvals.grants import leading_arguments
from ai_platform_engineering.manifest import McpServer
from ai_platform_engineering.mcp.tools import Invoke, McpTool, ToolNames, build_tool

Kind = Literal["reads", "writes", "destroys"]


def mcp_tool(
    name: str,
    kind: Kind,
    invoke: Invoke | None = None,
    schema: Mapping[str, Any] | None = None,
    *,
    agent: str = "argocd",
    server: str = "argocd",
) -> McpTool:
    annotations = ToolAnnotations(readOnlyHint=kind == "reads", destructiveHint=kind == "destroys")
    described = Tool(name=name, inputSchema=dict(schema or {"type": "object"}), annotations=annotations)
    entry = McpServer(name=server, transport="memory", module="some.module:server")
    return build_tool(agent, entry, described, ToolNames(name, name), invoke or _nothing)


async def _nothing(_tool: str, _arguments: dict[str, Any]) -> str:
    return ""


def grant_for(agent: str, tool: str, args: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The grant that an approval of this destructive call, to be remembered, gives."""
    return {"agent": agent, "tool": tool, "arguments": leading_arguments(args, schema), "effect": "destructive"}
