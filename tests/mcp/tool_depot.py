"""Tool servers with the tools of `depot`; as a program, the first of them over standard input and output."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.types import ToolAnnotations

from ai_platform_engineering.mcp.protocol import serve_stdio
from ai_platform_engineering.mcp.tool_server import ToolError, ToolResult, ToolServer
from ai_platform_engineering.settings import Settings, load_settings


def server(settings: Settings) -> ToolServer:
    """A server that answers with the settings it was made from, and that has one tool per way to answer."""
    state = {"open": False}

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        state["open"] = True
        yield
        state["open"] = False

    depot = ToolServer("depot", lifespan=lifespan)

    async def version() -> str:
        """The version."""
        return f"v1 in {settings.environ['PLACE']}"

    depot.tool(version, annotations=ToolAnnotations(readOnlyHint=True))

    @depot.tool
    async def applications(prefix: str = "", limit: int = 10) -> list[dict[str, str]]:
        """Applications by name."""
        return [{"name": f"{prefix}{number}"} for number in range(limit)]

    async def delete(name: str) -> str:
        """Deletes an application."""
        raise ToolError(f"{name} is protected")

    depot.tool(delete, annotations=ToolAnnotations(destructiveHint=True))

    @depot.tool
    async def crash() -> str:
        raise ValueError("the password is hunter2")

    @depot.tool
    async def declared_failure() -> ToolResult:
        return ToolResult("no such thing", failed=True)

    @depot.tool
    async def is_open() -> bool:
        """Whether the server's lifespan runs."""
        return state["open"]

    @depot.tool
    async def reserved(config: str, run_manager: str, callbacks: str, runtime: str, args: str, kwargs: str) -> str:
        """Arguments whose names mean something to LangChain."""
        return f"{config}{run_manager}{callbacks}{runtime}{args}{kwargs}"

    return depot


plain = ToolServer("plain")


@plain.tool
async def version() -> str:
    """A tool whose name another server has too."""
    return "plain version"


slow = ToolServer("slow")

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


if __name__ == "__main__":
    asyncio.run(serve_stdio(server(load_settings(env_file=None))))
