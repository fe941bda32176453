"""A FastMCP server in this process, called directly.

A session is held open beside it, because a session is what runs the server's lifespan and what tools see as theirs (to
log, to report progress, to announce new tools). Calls do not go through it: that would cost six times the CPU.

FastMCP takes long to import, and not every installation has it: nothing imports this module before one of its servers
has been found.
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
from mcp.server.lowlevel.server import request_ctx
from mcp.server.session import ServerSession
from mcp.shared.context import RequestContext
from mcp.types import InitializeRequest, InitializeResult, Tool, ToolListChangedNotification
from pydantic import ValidationError

from ai_platform_engineering.mcp.connection import Call, Ended, Lifeline, TimeIsUp, meta_of
from ai_platform_engineering.mcp.errors import Lost
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.mcp.results import Answer, answer, answer_of
from ai_platform_engineering.mcp.tool_server import wrong_arguments

logger = logging.getLogger(__name__)


class _Announcements(MessageHandler):
    def __init__(self, lifeline: Lifeline) -> None:
        self._lifeline = lifeline

    async def on_tool_list_changed(self, message: ToolListChangedNotification) -> None:
        self._lifeline.tools_changed()


class _SessionOfServer(Middleware):
    """Remembers the server's end of the session, which nothing hands out."""

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
    """A server object and the session held open beside it."""

    def __init__(
        self, server: FastMCP[Any], client: Client[FastMCPTransport], session: ServerSession, lifeline: Lifeline
    ) -> None:
        self._server = server
        self._client = client
        self._session = session
        self._lifeline = lifeline
        self._tasks: set[asyncio.Task[Answer]] = set()
        self._request_ids = itertools.count(1)

    async def list_tools(self) -> list[Tool]:
        return await self._client.list_tools()

    async def call_tool(self, call: Call, limit: float) -> Answer:
        # A task of its own: a tool that runs in a thread cannot be interrupted, but it can be left behind.
        task = asyncio.create_task(self._answer(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            async with self._lifeline.limit(limit):
                return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise
        except TimeIsUp:
            task.cancel()
            raise Lost(f"did not answer within {limit:g} seconds") from None
        except Ended:
            task.cancel()
            raise Lost("stopped") from None

    async def _answer(self, call: Call) -> Answer:
        name = call.tool
        request: RequestContext[ServerSession, Any, Any] = RequestContext(
            request_id=next(self._request_ids),
            meta=meta_of(call.meta),
            session=self._session,
            lifespan_context={},
        )
        token = request_ctx.set(request)
        try:
            result = await self._server.call_tool(name, call.arguments)
        except WrongArguments as error:
            return answer_of(_wrong_arguments(name, error), failed=True)
        except (NotFoundError, DisabledError):
            return answer_of(f"There is no tool named {name}.", failed=True)
        except FastMCPError as error:
            return answer_of(str(error), failed=True)
        except Exception:
            logger.exception("The tool %s raised something other than a tool error", name)
            return answer_of(f"{name} failed unexpectedly.", failed=True)
        finally:
            request_ctx.reset(token)
        return answer(result.content, result.structured_content, failed=result.is_error, arguments=call.arguments)


@asynccontextmanager
async def fastmcp_connection(
    server: FastMCP[Any], endpoint: Endpoint, lifeline: Lifeline
) -> AsyncIterator[FastMcpConnection]:
    """Runs the server's lifespan, and gives access to its tools."""
    capture = _SessionOfServer()
    # Mounting runs the server's lifespan without touching the server, which others may be using too.
    gateway: FastMCP[Any] = FastMCP(endpoint.name, middleware=[capture])
    gateway.mount(server)
    async with Client(gateway, message_handler=_Announcements(lifeline)) as client:
        if capture.session is None:
            raise RuntimeError("FastMCP opened a session without initializing it")
        yield FastMcpConnection(server, client, capture.session, lifeline)


def _wrong_arguments(name: str, error: WrongArguments) -> str:
    cause = error.__cause__
    return wrong_arguments(name, cause) if isinstance(cause, ValidationError) else str(error)
