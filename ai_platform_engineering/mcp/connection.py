"""An open connection to one MCP server: list its tools, call one, and detect the end of the connection.

`open_session` performs the MCP handshake over a pair of streams, which the stdio and HTTP transports provide.
`sessions.py` restarts servers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import ClientSession, McpError
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.shared.session import RequestResponder
from mcp.types import (
    CONNECTION_CLOSED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    ClientRequest,
    ClientResult,
    ErrorData,
    Implementation,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCRequest,
    PaginatedRequestParams,
    RequestId,
    ServerNotification,
    ServerRequest,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from ai_platform_engineering.installation import product_version
from ai_platform_engineering.mcp.errors import NotSent, ResultLost, ServerFailure
from ai_platform_engineering.mcp.process_output import StderrTail
from ai_platform_engineering.mcp.results import ToolAnswer, tool_answer

Inbox = MemoryObjectSendStream[SessionMessage | Exception]
"""The transport writes the server's messages to it."""
Outbox = MemoryObjectReceiveStream[SessionMessage]
"""The transport reads messages for the server from it."""
Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
"""The session's ends of inbox and outbox."""

_MAX_PAGES = 1000


class ConnectionEnded(Exception):  # noqa: N818 - a signal inside this package
    """The connection ended while a caller waited for it."""


class CallTimedOut(Exception):  # noqa: N818 - a signal inside this package
    """The connection is open, but the server did not answer in time."""


class ConnectionState:
    """The state of one connection. It wakes up the owner after a change, and all waiting callers at the end."""

    def __init__(self) -> None:
        self.end_reason: str | None = None
        """Why the connection cannot be used any more, as the end of a sentence about the server."""
        self.stderr: StderrTail | None = None
        """The last lines of standard error, if the server is a child process."""
        self._tools_changed = False
        self._changed = asyncio.Event()
        self._timeouts: set[asyncio.Timeout] = set()
        self._interrupted: set[asyncio.Timeout] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def end(self, reason: str, *, grace: float = 0.0) -> None:
        """End the connection; waiting callers are interrupted after `grace` seconds. The first reason wins."""
        if self.end_reason is None:
            self.end_reason = reason
        deadline = asyncio.get_running_loop().time() + grace
        for timeout in self._timeouts:
            if not timeout.expired() and (timeout.when() or deadline) >= deadline:
                timeout.reschedule(deadline)
                self._interrupted.add(timeout)
        self._changed.set()

    def tools_changed(self) -> None:
        """The server announced a change of its list of tools."""
        self._tools_changed = True
        self._changed.set()

    async def wait_for_change(self) -> bool:
        """True after a change of the tools, False after the end of the connection."""
        await self._changed.wait()
        self._changed.clear()
        tools_changed, self._tools_changed = self._tools_changed, False
        return tools_changed and self.end_reason is None

    @asynccontextmanager
    async def timeout(self, seconds: float) -> AsyncIterator[None]:
        """Interrupt the body with `ConnectionEnded` when the connection ends, with `CallTimedOut` after `seconds`."""
        if self.end_reason is not None:
            raise ConnectionEnded
        timeout = asyncio.timeout(seconds)
        try:
            async with timeout:
                self._timeouts.add(timeout)
                self._idle.clear()
                try:
                    yield
                finally:
                    self._timeouts.discard(timeout)
                    if not self._timeouts:
                        self._idle.set()
        except TimeoutError:
            if not timeout.expired():
                raise
            if timeout in self._interrupted:
                raise ConnectionEnded from None
            raise CallTimedOut from None

    async def wait_until_idle(self) -> None:
        """Wait until no caller waits for the connection."""
        await self._idle.wait()


class ServerConnection(Protocol):
    """An open connection. Both methods may raise `ServerFailure`; `call_tool` also `McpError`, an error response."""

    async def list_tools(self) -> list[Tool]: ...

    async def call_tool(self, call: McpCall, timeout: float) -> ToolAnswer: ...


@dataclass(frozen=True, slots=True)
class McpCall:
    """`headers` are those of this call; only the HTTP transport sends them."""

    tool: str
    arguments: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass
class InFlightCall(ClientMessageMetadata):
    """Metadata of the message of a tool call. The session passes it to the transport, which records the progress."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Of the request with which the HTTP transport sends the message."""
    request_id: RequestId | None = None
    """The id that the session gave the request, after the transport has sent it."""
    at_server: bool = False
    """Whether the server may have received the request."""

    def sent(self, request_id: RequestId) -> None:
        self.request_id = request_id
        self.at_server = True


class SessionConnection:
    """A connection over an MCP session."""

    def __init__(self, session: ClientSession, state: ConnectionState) -> None:
        self._session = session
        self._state = state
        self._cancellations: set[asyncio.Task[None]] = set()

    async def list_tools(self) -> list[Tool]:
        capabilities = self._session.get_server_capabilities()
        if capabilities is None or capabilities.tools is None:
            return []
        tools: list[Tool] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
            tools += page.tools
            cursor = page.nextCursor
            if not cursor:
                return tools
        raise ResultLost(f"never came to the end of its list of tools ({_MAX_PAGES} pages)")

    async def call_tool(self, call: McpCall, timeout: float) -> ToolAnswer:
        params = CallToolRequestParams(name=call.tool, arguments=call.arguments)
        in_flight = InFlightCall(headers=call.headers)
        try:
            async with self._state.timeout(timeout):
                result = await self._send(ClientRequest(CallToolRequest(params=params)), in_flight)
        except CallTimedOut:
            raise ResultLost(f"did not answer within {timeout:g} seconds") from None
        except ConnectionEnded:
            raise self._ended(in_flight) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise NotSent(self._state.end_reason or "closed its connection") from None
        except McpError as error:
            if isinstance(error.error.data, ServerFailure):
                raise error.error.data from None
            if error.error.code == CONNECTION_CLOSED and self._state.end_reason is not None:
                raise self._ended(in_flight) from None
            raise
        except ValidationError:
            raise ResultLost("answered with something that is not a tool result") from None
        return tool_answer(result.content, result.structuredContent, failed=result.isError, arguments=call.arguments)

    async def _send(self, request: ClientRequest, in_flight: InFlightCall) -> CallToolResult:
        try:
            # `session.call_tool` would compile and apply the tool's output schema on every call.
            return await self._session.send_request(request, CallToolResult, metadata=in_flight)
        except asyncio.CancelledError:
            if self._state.end_reason is None:
                task = asyncio.create_task(self._send_cancelled(in_flight))
                self._cancellations.add(task)
                task.add_done_callback(self._cancellations.discard)
            raise

    async def _send_cancelled(self, in_flight: InFlightCall) -> None:
        if in_flight.request_id is None:
            return
        params = CancelledNotificationParams(requestId=in_flight.request_id, reason="the caller no longer waits")
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._session.send_notification(ClientNotification(CancelledNotification(params=params)))

    def _ended(self, in_flight: InFlightCall) -> ServerFailure:
        return ResultLost("stopped") if in_flight.at_server else NotSent(self._state.end_reason or "stopped")

    async def aclose(self) -> None:
        for task in self._cancellations:
            task.cancel()
        await asyncio.gather(*self._cancellations, return_exceptions=True)


@asynccontextmanager
async def open_session(streams: Streams, state: ConnectionState) -> AsyncIterator[SessionConnection]:
    """Perform the handshake over `streams`. The task that enters the context must also leave it."""

    async def on_message(
        message: RequestResponder[ServerRequest, ClientResult] | ServerNotification | Exception,
    ) -> None:
        if isinstance(message, ServerNotification) and isinstance(message.root, ToolListChangedNotification):
            state.tools_changed()

    client = Implementation(name="ai-platform-engineering", version=product_version())
    async with ClientSession(*streams, message_handler=on_message, client_info=client) as session:
        connection = SessionConnection(session, state)
        try:
            await session.initialize()
            yield connection
        finally:
            await connection.aclose()


def failure_response(request: JSONRPCRequest, failure: ServerFailure) -> SessionMessage:
    """The response of a transport when the server cannot respond. The session passes `failure` to the caller."""
    error = ErrorData(code=CONNECTION_CLOSED, message=failure.reason, data=failure)
    return SessionMessage(JSONRPCMessage(JSONRPCError(jsonrpc="2.0", id=request.id, error=error)))


def deliver(inbox: Inbox, message: SessionMessage) -> None:
    """Pass a message to the session, unless the session is closed."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        inbox.send_nowait(message)
