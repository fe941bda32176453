"""A tool server that records which calls reached it."""

from __future__ import annotations

from mcp.types import ToolAnnotations

from ai_platform_engineering.mcp.tool_server import ToolServer
from ai_platform_engineering.settings import Settings

EXECUTED: list[str] = []


def server(_settings: Settings) -> ToolServer:
    tools = ToolServer("recorder")
    tools.tool(look_up, annotations=ToolAnnotations(title="Look up", readOnlyHint=True, destructiveHint=False))
    return tools


async def look_up(name: str) -> str:
    """Looks an application up by its name."""
    EXECUTED.append(name)
    return f"{name} is healthy."
