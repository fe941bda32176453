"""Clients of tool servers, over MCP and in this process: what the SDK's own client is told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.types import CallToolResult, TextContent

from ai_platform_engineering.mcp.protocol import protocol_server
from ai_platform_engineering.mcp.tool_server import ToolError, ToolServer


@asynccontextmanager
async def session_with(server: ToolServer) -> AsyncIterator[ClientSession]:
    async with server.running(), create_connected_server_and_client_session(protocol_server(server)) as session:
        yield session


async def ask(server: ToolServer, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The object that the tool gives, in a session of its own."""
    async with session_with(server) as session:
        result = await session.call_tool(tool, dict(arguments))
    text = text_of(result)
    assert result.structuredContent is not None, text
    return result.structuredContent


def text_of(result: CallToolResult) -> str:
    """What the tool says; raised where it says no."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    if result.isError:
        raise ToolError(block.text)
    return block.text
