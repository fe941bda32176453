"""From a server's endpoint to an open connection, by transport."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ai_platform_engineering.manifest import Transport
from ai_platform_engineering.mcp.connection import Connection, Lifeline, open_session
from ai_platform_engineering.mcp.expansion import Endpoint


@asynccontextmanager
async def connect(
    transport: Transport, endpoint: Endpoint, made_from: object, lifeline: Lifeline
) -> AsyncIterator[Connection]:
    """An initialized connection. To be left by the task that entered; leaving frees everything behind it. A server in
    this process is made from `made_from`.

    The transports are imported when first used: few installations need all of them.
    """
    match transport:
        case "memory":
            from ai_platform_engineering.mcp.memory import memory_connection  # noqa: PLC0415

            async with memory_connection(endpoint, made_from, lifeline) as connection:
                yield connection
        case "stdio":
            from ai_platform_engineering.mcp.process import stdio_streams  # noqa: PLC0415

            async with stdio_streams(endpoint, lifeline) as streams, open_session(streams, lifeline) as session:
                yield session
        case "http":
            from ai_platform_engineering.mcp.streamable_http import http_streams  # noqa: PLC0415

            async with http_streams(endpoint, lifeline) as streams, open_session(streams, lifeline) as session:
                yield session
