"""Which effect a tool of an MCP server has: the manifest's word, else the server's, else MCP's defaults."""

from __future__ import annotations

from mcp.types import Tool, ToolAnnotations

from ai_platform_engineering.approvals.effects import Effect
from ai_platform_engineering.manifest import McpServer


def tool_effect(server: McpServer, tool: Tool) -> Effect:
    """The effect of the tool whatever its arguments are; some arguments can raise it."""
    return server.effect(tool.name) or annotated_effect(tool.annotations)


def annotated_effect(annotations: ToolAnnotations | None) -> Effect:
    """By MCP's defaults, a tool that does not say that it only reads writes, and one that does not deny it destroys."""
    if annotations is not None and annotations.readOnlyHint:
        return "read"
    if annotations is not None and annotations.destructiveHint is False:
        return "write"
    return "destructive"
