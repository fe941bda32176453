"""FastMCP servers for the tests of in-memory servers; modules of manifests name them as `depot:<attribute>`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp.types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools.base import ToolResult

from ai_platform_engineering.settings import Settings


@asynccontextmanager
async def lifespan(server: FastMCP[Any]) -> AsyncIterator[dict[str, Any]]:
    state = {"open": True}
    yield state
    state["open"] = False


def server(settings: Settings) -> FastMCP[Any]:
    """A server that answers with the settings it was made from, and that has one tool per way to answer."""
    depot: FastMCP[Any] = FastMCP("depot", lifespan=lifespan, mask_error_details=True)

    @depot.tool(annotations={"readOnlyHint": True})
    async def version() -> str:
        """The version."""
        return f"v1 in {settings.environ['PLACE']}"

    @depot.tool
    async def applications(prefix: str = "", limit: int = 10) -> list[dict[str, str]]:
        """Applications by name."""
        return [{"name": f"{prefix}{number}"} for number in range(limit)]

    @depot.tool(annotations={"destructiveHint": True})
    async def delete(name: str) -> str:
        """Deletes an application."""
        raise ToolError(f"{name} is protected")

    @depot.tool
    async def crash() -> str:
        raise ValueError("the password is hunter2")

    @depot.tool
    async def declared_failure() -> ToolResult:
        return ToolResult(content="no such thing", is_error=True)

    @depot.tool
    async def caller(ctx: Context) -> str:
        """What a tool can do with its client, and see of its server."""
        await ctx.info("a caller asked")
        await ctx.report_progress(1, 2)
        return f"open={ctx.lifespan_context['open']}"

    @depot.tool
    async def ask(ctx: Context) -> str:
        return str(await ctx.elicit("Your name?", str))

    @depot.tool
    async def learn(ctx: Context) -> str:
        """Adds a tool and says so."""

        async def learned() -> str:
            """A new trick."""
            return "learned"

        depot.add_tool(learned)
        await ctx.send_notification(mcp.types.ToolListChangedNotification())
        return "done"

    @depot.tool
    async def reserved(config: str, run_manager: str, callbacks: str, runtime: str, args: str, kwargs: str) -> str:
        """Arguments whose names mean something to LangChain."""
        return f"{config}{run_manager}{callbacks}{runtime}{args}{kwargs}"

    return depot


plain: FastMCP[Any] = FastMCP("plain")


@plain.tool
async def version() -> str:
    """A tool whose name another server has too."""
    return "plain version"


number = 42

slow: FastMCP[Any] = FastMCP("slow")

begun = threading.Event()
"""Set by `wait`."""
released = threading.Event()
"""Ends `block`."""


@slow.tool
async def wait() -> str:
    """Takes longer than any caller waits."""
    begun.set()
    await asyncio.sleep(60)
    return "at last"


@slow.tool
def block() -> str:
    """Cannot be interrupted."""
    released.wait(60)
    return "at last"
