"""An MCP server in this process: the object that a manifest names, called directly."""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.types import Tool

from ai_platform_engineering.mcp.connection import Call, Connection, Ended, Lifeline, TimeIsUp
from ai_platform_engineering.mcp.errors import Lost, NotStartable
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.mcp.results import Answer, answer_of
from ai_platform_engineering.mcp.tool_server import ToolServer
from ai_platform_engineering.utils.extras import install_command

logger = logging.getLogger(__name__)

# One import at a time: FastMCP imports itself in circles, and breaks when two threads are at it.
_IMPORTING: Final = threading.Lock()


class MemoryConnection:
    """A tool server whose lifespan runs."""

    def __init__(self, server: ToolServer, lifeline: Lifeline) -> None:
        self._server = server
        self._lifeline = lifeline

    async def list_tools(self) -> list[Tool]:
        return self._server.list_tools()

    async def call_tool(self, call: Call, limit: float) -> Answer:
        try:
            # A tool that runs in a thread is left behind when the time is up; it cannot be interrupted.
            async with self._lifeline.limit(limit):
                result = await self._server.call_tool(call.tool, call.arguments)
        except TimeIsUp:
            raise Lost(f"did not answer within {limit:g} seconds") from None
        except Ended:
            raise Lost("stopped") from None
        return answer_of(result.text, failed=result.failed)


@asynccontextmanager
async def memory_connection(endpoint: Endpoint, made_from: object, lifeline: Lifeline) -> AsyncIterator[Connection]:
    """Runs the lifespan of the server that `endpoint.module` names, and gives access to its tools."""
    server = await load_server(endpoint.module, made_from)
    if isinstance(server, ToolServer):
        async with server.running():
            yield MemoryConnection(server, lifeline)
        return
    fastmcp_memory = await _imported("ai_platform_engineering.mcp.fastmcp_memory")
    async with fastmcp_memory.fastmcp_connection(server, endpoint, lifeline) as connection:
        yield connection


async def load_server(module: str, made_from: object) -> Any:
    """The tool server, or the FastMCP server, that `package.module:attribute` is, or makes when called with
    `made_from`: the settings, for all that a manifest can name.
    """
    path, _, attribute = module.partition(":")
    try:
        found = getattr(await _imported(path), attribute)
    except Exception as error:
        logger.debug("%s could not be imported", module, exc_info=True)
        raise NotStartable(f"was not started because {_why_not_imported(module, error)}") from error
    if not _is_server(found) and callable(found):
        found = found(made_from)
    if not _is_server(found):
        raise NotStartable(
            f"was not started because {module!r} is a {type(found).__name__}, not a ToolServer, a FastMCP server "
            f"or a function that makes one of them from the settings"
        )
    return found


async def _imported(name: str) -> Any:
    """In a thread: some modules take seconds."""

    def import_alone() -> Any:
        with _IMPORTING:
            return importlib.import_module(name)

    return await asyncio.to_thread(import_alone)


def _is_server(found: object) -> bool:
    # By name: FastMCP takes long to import, and is not there in every installation.
    bases = ((base.__module__.partition(".")[0], base.__name__) for base in type(found).__mro__)
    return isinstance(found, ToolServer) or ("fastmcp", "FastMCP") in bases


def _why_not_imported(module: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == "fastmcp":
        return f"{module!r} needs FastMCP: {install_command('fastmcp')}"
    return f"{module!r} could not be imported ({type(error).__name__})"
