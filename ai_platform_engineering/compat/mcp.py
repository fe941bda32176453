"""mcp: the context variable of the current request, and the table of request handlers, neither of them documented.

`request_context` sets the variable that `Server.request_context` reads, for a tool that is called without a message.
`set_tool_handlers` fills `Server.request_handlers` directly. The SDK's decorators would validate arguments and results
against the JSON schemas, which the tools have already done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.lowlevel.server import request_ctx
from mcp.server.session import ServerSession
from mcp.shared.context import RequestContext
from mcp.types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ListToolsRequest,
    ListToolsResult,
    RequestId,
    ServerResult,
    Tool,
)


@contextmanager
def request_context(session: ServerSession, request_id: RequestId) -> Iterator[None]:
    """Code inside sees a request of `session`, as if it had come in a message."""
    request: RequestContext[ServerSession, Any, Any] = RequestContext(
        request_id=request_id, meta=None, session=session, lifespan_context={}
    )
    token = request_ctx.set(request)
    try:
        yield
    finally:
        request_ctx.reset(token)


def set_tool_handlers(
    server: Server[Any, Any],
    list_tools: Callable[[], list[Tool]],
    call_tool: Callable[[CallToolRequestParams], Awaitable[CallToolResult]],
) -> None:
    """Answer the requests for tools with these functions, without validation by the SDK."""

    async def on_list(_request: ListToolsRequest) -> ServerResult:
        return ServerResult(ListToolsResult(tools=list_tools()))

    async def on_call(request: CallToolRequest) -> ServerResult:
        return ServerResult(await call_tool(request.params))

    server.request_handlers[ListToolsRequest] = on_list
    server.request_handlers[CallToolRequest] = on_call
