"""A FastMCP server in this process, called directly.

A session stays open next to it. The session runs the server's lifespan, and tools use it to log, to report progress and
to announce new tools. Calls bypass the session, because they would need six times as much CPU time through it.

FastMCP is slow to import and not always installed, so this module is imported only for a FastMCP server.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastmcp import Client, FastMCP
from fastmcp.client.messages import MessageHandler
from fastmcp.client.transports import FastMCPTransport
from fastmcp.exceptions import DisabledError, FastMCPError, NotFoundError
from fastmcp.exceptions import ValidationError as WrongArguments
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from mcp.server.session import ServerSession
from mcp.types import InitializeRequest, InitializeResult, Tool, ToolListChangedNotification
from pydantic import ValidationError

from ai_platform_engineering.compat.mcp import request_context
from ai_platform_engineering.mcp.connection import CallTimedOut, ConnectionEnded, ConnectionState, McpCall
from ai_platform_engineering.mcp.errors import ResultLost
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.mcp.results import ToolAnswer, text_answer, tool_answer
from ai_platform_engineering.mcp.tool_server import wrong_arguments

logger = logging.getLogger(__name__)


class _ToolListHandler(MessageHandler):
    def __init__(self, state: ConnectionState) -> None:
        self._state = state

    async def on_tool_list_changed(self, message: ToolListChangedNotification) -> None:
        self._state.tools_changed()


class _SessionCapture(Middleware):
    """Stores the server's side of the session, which FastMCP offers only inside of a request."""

    session: ServerSession | None = None

    async def on_initialize(
        self,
        context: MiddlewareContext[InitializeRequest],
        call_next: CallNext[InitializeRequest, InitializeResult | None],
    ) -> InitializeResult | None:
        if context.fastmcp_context is not None:
            self.session = context.fastmcp_context.session
        return await call_next(context)


class FastMcpConnection:
    """A server object and its open session."""

    def __init__(
        self, server: FastMCP[Any], client: Client[FastMCPTransport], session: ServerSession, state: ConnectionState
    ) -> None:
        self._server = server
        self._client = client
        self._session = session
        self._state = state
        self._tasks: set[asyncio.Task[ToolAnswer]] = set()
        self._request_ids = itertools.count(1)

    async def list_tools(self) -> list[Tool]:
        return await self._client.list_tools()

    async def call_tool(self, call: McpCall, timeout: float) -> ToolAnswer:
        # In a separate task: a tool in a thread cannot be interrupted, but the caller can stop waiting for it.
        task = asyncio.create_task(self._answer(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            async with self._state.timeout(timeout):
                return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise
        except CallTimedOut:
            task.cancel()
            raise ResultLost(f"did not answer within {timeout:g} seconds") from None
        except ConnectionEnded:
            task.cancel()
            raise ResultLost("stopped") from None

    async def _answer(self, call: McpCall) -> ToolAnswer:
        name = call.tool
        try:
            with request_context(self._session, next(self._request_ids)):
                result = await self._server.call_tool(name, call.arguments)
        except WrongArguments as error:
            return text_answer(_wrong_arguments(name, error), failed=True)
        except (NotFoundError, DisabledError):
            return text_answer(f"There is no tool named {name}.", failed=True)
        except FastMCPError as error:
            return text_answer(str(error), failed=True)
        except Exception:
            logger.exception("The tool %s raised an unexpected exception", name)
            return text_answer(f"{name} failed unexpectedly.", failed=True)
        return tool_answer(result.content, result.structured_content, failed=result.is_error, arguments=call.arguments)


@asynccontextmanager
async def fastmcp_connection(
    server: FastMCP[Any], endpoint: Endpoint, state: ConnectionState
) -> AsyncIterator[FastMcpConnection]:
    """Run the server's lifespan and connect to it."""
    capture = _SessionCapture()
    # Mounting runs the server's lifespan without changing the server object, which may be shared.
    gateway: FastMCP[Any] = FastMCP(endpoint.name, middleware=[capture])
    gateway.mount(server)
    async with Client(gateway, message_handler=_ToolListHandler(state)) as client:
        if capture.session is None:
            raise RuntimeError("FastMCP opened a session without initializing it")
        yield FastMcpConnection(server, client, capture.session, state)


def _wrong_arguments(name: str, error: WrongArguments) -> str:
    cause = error.__cause__
    return wrong_arguments(name, cause) if isinstance(cause, ValidationError) else str(error)
