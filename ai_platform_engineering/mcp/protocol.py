"""A tool server behind MCP: for programs that start it as a process, and for those that reach it over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import (
    CallToolRequest,
    CallToolResult,
    ListToolsRequest,
    ListToolsResult,
    ServerResult,
    TextContent,
)
from pydantic_core import to_jsonable_python
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ai_platform_engineering.mcp.tool_server import ToolResult, ToolServer
from ai_platform_engineering.version import product_version


def protocol_server(tools: ToolServer) -> Server[Any, Any]:
    """The tools as a server of the SDK. The lifespan is not its business: it would run it for every session."""
    server: Server[Any, Any] = Server(tools.name, product_version(), tools.instructions)

    async def listed(_request: ListToolsRequest) -> ServerResult:
        return ServerResult(ListToolsResult(tools=tools.list_tools()))

    async def called(request: CallToolRequest) -> ServerResult:
        result = await tools.call_tool(request.params.name, request.params.arguments or {})
        return ServerResult(_call_result(result))

    # Not with the SDK's decorators: they check arguments and results once more, against the JSON schemas.
    server.request_handlers[ListToolsRequest] = listed
    server.request_handlers[CallToolRequest] = called
    return server


async def serve_stdio(tools: ToolServer) -> None:
    """Until standard input ends."""
    server = protocol_server(tools)
    async with tools.running(), stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


def http_app(tools: ToolServer, path: str, *, stateless: bool = False, json_response: bool = False) -> Starlette:
    """The tools at `path`, over streamable HTTP, while the lifespan of the app runs.

    Without state every request is on its own, and nothing is listened for; with `json_response` it is answered with
    JSON in place of a stream of events.
    """
    endpoint = _Endpoint()

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        # One for each run of the app: the SDK's can be run once.
        sessions = StreamableHTTPSessionManager(
            protocol_server(tools), json_response=json_response, stateless=stateless
        )
        async with tools.running(), sessions.run():
            endpoint.sessions = sessions
            yield

    methods = ["POST", "DELETE"] if stateless else None
    return Starlette(routes=[Route(path, endpoint, methods=methods)], lifespan=lifespan)


class _Endpoint:
    sessions: StreamableHTTPSessionManager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.sessions.handle_request(scope, receive, send)


def _call_result(result: ToolResult) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=result.text)] if result.text else [],
        structuredContent=None if result.structured is None else to_jsonable_python(result.structured, fallback=str),
        isError=result.failed,
    )
