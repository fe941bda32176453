"""An MCP server in this process: a Python object that the manifest names and that is called directly."""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from mcp.types import Tool

from ai_platform_engineering.installation import install_command
from ai_platform_engineering.mcp.connection import (
    CallTimedOut,
    ConnectionEnded,
    ConnectionState,
    McpCall,
    ServerConnection,
)
from ai_platform_engineering.mcp.errors import NotStartable, ResultLost
from ai_platform_engineering.mcp.expansion import Endpoint
from ai_platform_engineering.mcp.results import ToolAnswer, text_answer
from ai_platform_engineering.mcp.tool_server import ToolServer

logger = logging.getLogger(__name__)

# One import at a time: FastMCP has circular imports, which fail when two threads import it.
_IMPORTING: Final = threading.Lock()


class MemoryConnection:
    """A tool server whose lifespan is running."""

    def __init__(self, server: ToolServer, state: ConnectionState) -> None:
        self._server = server
        self._state = state

    async def list_tools(self) -> list[Tool]:
        return self._server.list_tools()

    async def call_tool(self, call: McpCall, timeout: float) -> ToolAnswer:
        try:
            # A tool in a thread cannot be interrupted. After the timeout it continues without a caller.
            async with self._state.timeout(timeout):
                result = await self._server.call_tool(call.tool, call.arguments)
        except CallTimedOut:
            raise ResultLost(f"did not answer within {timeout:g} seconds") from None
        except ConnectionEnded:
            raise ResultLost("stopped") from None
        return text_answer(result.text, failed=result.failed)


@asynccontextmanager
async def memory_connection(
    endpoint: Endpoint, factory_argument: object, state: ConnectionState
) -> AsyncIterator[ServerConnection]:
    """Run the lifespan of the server that `endpoint.module` names, and connect to it."""
    server = await load_server(endpoint.module, factory_argument)
    if isinstance(server, ToolServer):
        async with server.running():
            yield MemoryConnection(server, state)
        return
    fastmcp_memory = await _imported("ai_platform_engineering.mcp.fastmcp_memory")
    async with fastmcp_memory.fastmcp_connection(server, endpoint, state) as connection:
        yield connection


async def load_server(module: str, factory_argument: object) -> Any:
    """The tool server or FastMCP server at `package.module:attribute`, or the result of calling that function.

    The function gets `factory_argument`, which is the settings for every server of a manifest.
    """
    path, _, attribute = module.partition(":")
    try:
        found = getattr(await _imported(path), attribute)
    except Exception as error:
        logger.debug("%s could not be imported", module, exc_info=True)
        raise NotStartable(f"was not started because {_why_not_imported(module, error)}") from error
    if not _is_server(found) and callable(found):
        found = found(factory_argument)
    if not _is_server(found):
        raise NotStartable(
            f"was not started because {module!r} is a {type(found).__name__}, not a ToolServer, a FastMCP server "
            f"or a function that makes one of them from the settings"
        )
    return found


async def _imported(name: str) -> Any:
    """Import in a thread, as some modules take seconds."""

    def import_alone() -> Any:
        with _IMPORTING:
            return importlib.import_module(name)

    return await asyncio.to_thread(import_alone)


def _is_server(found: object) -> bool:
    # Compares names, as FastMCP is slow to import and not always installed.
    bases = ((base.__module__.partition(".")[0], base.__name__) for base in type(found).__mro__)
    return isinstance(found, ToolServer) or ("fastmcp", "FastMCP") in bases


def _why_not_imported(module: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == "fastmcp":
        return f"{module!r} needs FastMCP: {install_command('fastmcp')}"
    return f"{module!r} could not be imported ({type(error).__name__})"
