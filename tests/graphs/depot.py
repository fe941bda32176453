"""A tool server in this process whose parcels can be looked up and deleted."""

from __future__ import annotations

from mcp.types import ToolAnnotations

from ai_platform_engineering.mcp.tool_server import ToolServer
from ai_platform_engineering.settings import Settings


def server(_settings: Settings) -> ToolServer:
    tools = ToolServer("depot")
    tools.tool(find_parcel, annotations=ToolAnnotations(readOnlyHint=True, destructiveHint=False))
    tools.tool(delete_parcel, annotations=ToolAnnotations(readOnlyHint=False, destructiveHint=True))
    return tools


async def find_parcel(name: str) -> str:
    """Find a parcel."""
    if name == "broken":
        raise RuntimeError("the shelf fell down")
    return f"{name} is here."


async def delete_parcel(name: str) -> str:
    """Delete a parcel."""
    return f"{name} is gone."
