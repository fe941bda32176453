"""An open connection to one server, whatever the transport: list its tools, call one, learn that it ended.

`open_session` is the MCP handshake over a pair of streams, which the stdio and HTTP transports provide. Restarting is
the owner's business, not this module's.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp import ClientSession, McpError
from mcp.shared.message import SessionMessage
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
    RequestParams,
    ServerNotification,
    ServerRequest,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from ai_platform_engineering.mcp.errors import Lost, NotSent, ServerTrouble
from ai_platform_engineering.mcp.results import Answer, answer
from ai_platform_engineering.mcp.stderr_tail import StderrTail
from ai_platform_engineering.version import product_version

Inbox = MemoryObjectSendStream[SessionMessage | Exception]
"""Where a transport puts what the server sent."""
Outbox = MemoryObjectReceiveStream[SessionMessage]
"""Where a transport takes what the server is to be sent."""
Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
"""The session's ends of the two."""

_MAX_PAGES = 1000


class Ended(Exception):  # noqa: N818 - a signal inside this package
    """The connection has ended under who waited for it."""


class TimeIsUp(Exception):  # noqa: N818 - a signal inside this package
    """The connection is there, but it did not answer in time."""


class Lifeline:
    """The life of one connection: what it has to tell its owner, and who must be released when it ends."""

    def __init__(self) -> None:
        self.ended: str | None = None
        """Why the connection is of no more use, as the end of a sentence about the server."""
        self.at_server: set[RequestId] = set()
        """The calls that the server may have seen and that have no answer yet."""
        self.stderr: StderrTail | None = None
        """What a server that is a process of ours wrote last to its standard error."""
        self._tools_changed = False
        self._news = asyncio.Event()
        self._limits: set[asyncio.Timeout] = set()
        self._cut_short: set[asyncio.Timeout] = set()
        self._nobody_waits = asyncio.Event()
        self._nobody_waits.set()

    def end(self, reason: str, *, grace: float = 0.0) -> None:
        """The connection is of no more use; who waits for it is released after `grace` seconds. First reason stays."""
        if self.ended is None:
            self.ended = reason
        last_moment = asyncio.get_running_loop().time() + grace
        for limit in self._limits:
            if not limit.expired() and (limit.when() or last_moment) >= last_moment:
                limit.reschedule(last_moment)
                self._cut_short.add(limit)
        self._news.set()

    def sent(self, request: JSONRPCRequest) -> None:
        """From now on the server may have seen the request."""
        if request.method == "tools/call":
            self.at_server.add(request.id)

    def tools_changed(self) -> None:
        self._tools_changed = True
        self._news.set()

    async def news(self) -> bool:
        """Waits for something to happen: True when the tools have changed, False when the connection has ended."""
        await self._news.wait()
        self._news.clear()
        changed, self._tools_changed = self._tools_changed, False
        return changed and self.ended is None

    @asynccontextmanager
    async def limit(self, seconds: float) -> AsyncIterator[None]:
        """Interrupts what runs inside with `Ended` when the connection ends, with `TimeIsUp` when it takes longer."""
        if self.ended is not None:
            raise Ended
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                self._limits.add(limit)
                self._nobody_waits.clear()
                try:
                    yield
                finally:
                    self._limits.discard(limit)
                    if not self._limits:
                        self._nobody_waits.set()
        except TimeoutError:
            if not limit.expired():
                raise
            if limit in self._cut_short:
                raise Ended from None
            raise TimeIsUp from None

    async def deserted(self) -> None:
        """Waits, after the end, until nobody waits for the connection any more."""
        await self._nobody_waits.wait()


class Connection(Protocol):
    """An open connection. Both calls may raise a `ServerTrouble`; `call_tool` also `McpError`, the server's own no."""

    async def list_tools(self) -> list[Tool]: ...

    async def call_tool(self, call: Call, limit: float) -> Answer: ...


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: dict[str, Any]
    meta: Mapping[str, Any]


class SessionConnection:
    """A connection over an MCP session."""

    def __init__(self, session: ClientSession, lifeline: Lifeline) -> None:
        self._session = session
        self._lifeline = lifeline
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
        raise Lost(f"never came to the end of its list of tools ({_MAX_PAGES} pages)")

    async def call_tool(self, call: Call, limit: float) -> Answer:
        params = CallToolRequestParams(name=call.tool, arguments=call.arguments, _meta=meta_of(call.meta))
        # The session's next id. It is not public, and nothing else tells what became of the request.
        request_id: int = getattr(self._session, "_request_id", -1)
        try:
            async with self._lifeline.limit(limit):
                result = await self._send(ClientRequest(CallToolRequest(params=params)), request_id)
        except TimeIsUp:
            raise Lost(f"did not answer within {limit:g} seconds") from None
        except Ended:
            raise self._ended(request_id) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise NotSent(self._lifeline.ended or "closed its connection") from None
        except McpError as error:
            if isinstance(error.error.data, ServerTrouble):
                raise error.error.data from None
            if error.error.code == CONNECTION_CLOSED and self._lifeline.ended is not None:
                raise self._ended(request_id) from None
            raise
        except ValidationError:
            raise Lost("answered with something that is not a tool result") from None
        finally:
            self._lifeline.at_server.discard(request_id)
        return answer(result.content, result.structuredContent, failed=result.isError, arguments=call.arguments)

    async def _send(self, request: ClientRequest, request_id: int) -> CallToolResult:
        try:
            # Not `session.call_tool`: it compiles and applies the tool's output schema on every call.
            return await self._session.send_request(request, CallToolResult)
        except asyncio.CancelledError:
            if self._lifeline.ended is None:
                task = asyncio.create_task(self._send_cancelled(request_id))
                self._cancellations.add(task)
                task.add_done_callback(self._cancellations.discard)
            raise

    async def _send_cancelled(self, request_id: int) -> None:
        params = CancelledNotificationParams(requestId=request_id, reason="the caller no longer waits")
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await self._session.send_notification(ClientNotification(CancelledNotification(params=params)))

    def _ended(self, request_id: int) -> ServerTrouble:
        if request_id in self._lifeline.at_server or request_id < 0:
            return Lost("stopped")
        return NotSent(self._lifeline.ended or "stopped")

    async def aclose(self) -> None:
        for task in self._cancellations:
            task.cancel()
        await asyncio.gather(*self._cancellations, return_exceptions=True)


@asynccontextmanager
async def open_session(streams: Streams, lifeline: Lifeline) -> AsyncIterator[SessionConnection]:
    """The handshake over `streams`. To be left by the task that entered."""

    async def on_message(
        message: RequestResponder[ServerRequest, ClientResult] | ServerNotification | Exception,
    ) -> None:
        if isinstance(message, ServerNotification) and isinstance(message.root, ToolListChangedNotification):
            lifeline.tools_changed()

    client = Implementation(name="ai-platform-engineering", version=product_version())
    async with ClientSession(*streams, message_handler=on_message, client_info=client) as session:
        connection = SessionConnection(session, lifeline)
        try:
            await session.initialize()
            yield connection
        finally:
            await connection.aclose()


def failure(request: JSONRPCRequest, trouble: ServerTrouble) -> SessionMessage:
    """The answer a transport gives in the server's place; the session hands `trouble` to the caller."""
    error = ErrorData(code=CONNECTION_CLOSED, message=trouble.reason, data=trouble)
    return SessionMessage(JSONRPCMessage(JSONRPCError(jsonrpc="2.0", id=request.id, error=error)))


def deliver(inbox: Inbox, message: SessionMessage) -> None:
    """Puts a message where the session finds it, unless the session is gone."""
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        inbox.send_nowait(message)


def meta_of(values: Mapping[str, Any]) -> RequestParams.Meta | None:
    return RequestParams.Meta(**values) if values else None
