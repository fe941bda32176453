"""A tool server over the MCP protocol: on standard input and output, or over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolRequestParams, CallToolResult, TextContent
from pydantic_core import to_jsonable_python
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ai_platform_engineering.compat.mcp import set_tool_handlers
from ai_platform_engineering.installation import product_version
from ai_platform_engineering.mcp.tool_server import ToolResult, ToolServer


def protocol_server(tools: ToolServer) -> Server[Any, Any]:
    """The tools as a server of the SDK. It gets no lifespan, because the SDK would run it once per session."""
    server: Server[Any, Any] = Server(tools.name, product_version(), tools.instructions)

    async def call_tool(params: CallToolRequestParams) -> CallToolResult:
        return _call_result(await tools.call_tool(params.name, params.arguments or {}))

    set_tool_handlers(server, tools.list_tools, call_tool)
    return server


async def serve_stdio(tools: ToolServer) -> None:
    """Serve until standard input is closed."""
    server = protocol_server(tools)
    async with tools.running(), stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def http_app(tools: ToolServer, path: str, *, stateless: bool = False, json_response: bool = False) -> Starlette:
    """The tools at `path`, over streamable HTTP, while the lifespan of the app runs.

    If `stateless`, there are no sessions and no stream of server messages. With `json_response`, a response is JSON
    instead of an event stream.
    """
    endpoint = _McpEndpoint()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        # A session manager of the SDK can run only once, so each run of the app has its own.
        sessions = StreamableHTTPSessionManager(
            protocol_server(tools), json_response=json_response, stateless=stateless
        )
        async with tools.running(), sessions.run():
            endpoint.sessions = sessions
            yield

    methods = ["POST", "DELETE"] if stateless else None
    return Starlette(routes=[Route(path, endpoint, methods=methods)], lifespan=lifespan)


class _McpEndpoint:
    sessions: StreamableHTTPSessionManager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.sessions.handle_request(scope, receive, send)


def _call_result(result: ToolResult) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=result.text)] if result.text else [],
        structuredContent=None if result.structured is None else to_jsonable_python(result.structured, fallback=str),
        isError=result.failed,
    )
