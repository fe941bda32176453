"""The undocumented parts of mcp that `compat/mcp.py` uses, and two properties of its sessions that `mcp/` relies on."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest
from mcp import ClientSession, McpError
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.shared.memory import create_connected_server_and_client_session
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ClientRequest,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    TextContent,
    Tool,
)

CHANGED = f"mcp {version('mcp')} changed a part that compat/mcp.py uses"
RELIED_ON = f"mcp {version('mcp')} changed a property of ClientSession that mcp/connection.py relies on"

try:
    from ai_platform_engineering.compat.mcp import request_context, set_tool_handlers
except ImportError as error:
    raise ImportError(f"{CHANGED}: {error}.") from error


def test_the_request_of_a_server_is_in_a_context_variable() -> None:
    from mcp.server.lowlevel.server import request_ctx

    assert isinstance(request_ctx, ContextVar), f"{CHANGED}: request_ctx is not a context variable."
    session = cast(ServerSession, SimpleNamespace())
    server: Server[Any, Any] = Server("s")
    with request_context(session, 7):
        try:
            request = server.request_context
        except LookupError:
            pytest.fail(f"{CHANGED}: Server.request_context does not read request_ctx.")
        assert (request.session, request.request_id) == (session, 7), (
            f"{CHANGED}: the request in request_ctx is not the one that was set."
        )
    with pytest.raises(LookupError):
        _ = server.request_context


async def test_fastmcp_reads_the_request_from_the_context_variable() -> None:
    fastmcp = pytest.importorskip("fastmcp")
    server = fastmcp.FastMCP("s")

    async def number(context: Any) -> str:
        request = context.request_context
        return "nothing" if request is None else str(request.request_id)

    number.__annotations__["context"] = fastmcp.Context
    server.tool(number)
    with request_context(cast(ServerSession, SimpleNamespace()), 7):
        result = await server.call_tool("number", {})
    assert result.content[0].text == "7", (
        f"fastmcp {version('fastmcp')} does not read mcp's request_ctx, which compat/mcp.py sets."
    )


async def test_handlers_are_called_without_validation() -> None:
    server: Server[Any, Any] = Server("s")
    assert isinstance(getattr(server, "request_handlers", None), dict), f"{CHANGED}: Server has no request_handlers."
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

    async def call_tool(params: CallToolRequestParams) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=f"{params.name} {params.arguments}")])

    set_tool_handlers(server, lambda: [Tool(name="t", inputSchema=schema, outputSchema=schema)], call_tool)
    assert server.get_capabilities(NotificationOptions(), {}).tools is not None, (
        f"{CHANGED}: a server with handlers in request_handlers does not announce tools."
    )
    async with create_connected_server_and_client_session(server) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert listed == ["t"], f"{CHANGED}: request_handlers does not answer tools/list."
        request = CallToolRequest(params=CallToolRequestParams(name="t", arguments={}))
        result = await client.send_request(ClientRequest(request), CallToolResult)
    assert result.content == [TextContent(type="text", text="t {}")], (
        f"{CHANGED}: request_handlers does not answer tools/call, or the SDK validates the arguments: {result!r}."
    )


@asynccontextmanager
async def session_and_transport() -> AsyncIterator[tuple[ClientSession, Any, Any]]:
    """A session, and the transport's two ends: it receives from the first and sends to the second."""
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](math.inf)
    async with to_session, incoming, outgoing, from_session, ClientSession(incoming, outgoing) as session:
        yield session, from_session, to_session


async def test_metadata_and_error_data_pass_through_a_session_unchanged() -> None:
    metadata, data = ClientMessageMetadata(), object()
    received: list[SessionMessage] = []
    async with session_and_transport() as (session, from_session, to_session), anyio.create_task_group() as tasks:

        async def fail_the_request() -> None:
            message = await from_session.receive()
            received.append(message)
            error = ErrorData(code=1, message="", data=data)
            failure = JSONRPCError(jsonrpc="2.0", id=message.message.root.id, error=error)
            await to_session.send(SessionMessage(JSONRPCMessage(failure)))

        tasks.start_soon(fail_the_request)
        request = ClientRequest(CallToolRequest(params=CallToolRequestParams(name="t")))
        with pytest.raises(McpError) as raised:
            await session.send_request(request, CallToolResult, metadata=metadata)
    assert isinstance(received[0].message.root, JSONRPCRequest), f"{RELIED_ON}: a request is not a JSONRPCRequest."
    assert received[0].metadata is metadata, (
        f"{RELIED_ON}: send_request does not pass its metadata to the transport, so a call without a result would "
        "count as not sent and be repeated."
    )
    assert raised.value.error.data is data, (
        f"{RELIED_ON}: the data of an error is copied, so the failures of a transport are not recognised."
    )
