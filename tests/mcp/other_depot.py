"""One more FastMCP server, whose module imports something else of FastMCP first."""

from __future__ import annotations

from typing import Any

from fastmcp.tools.base import ToolResult

from fastmcp import FastMCP  # isort: skip

plain: FastMCP[Any] = FastMCP("other")


@plain.tool
async def version() -> ToolResult:
    """The version of the other depot."""
    return ToolResult("other version")
