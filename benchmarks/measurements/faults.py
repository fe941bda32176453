"""What a fault in the answer to one call of an MCP server over HTTP does to its caller and to other calls."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.mcp.connection import ConnectionState, McpCall, SessionConnection
from ai_platform_engineering.mcp.errors import ServerFailure
from benchmarks.faulty_server import SLOW, UNANSWERED, UNAVAILABLE
from benchmarks.processes import started
from benchmarks.replaced import mcp_session
from benchmarks.rows import Row

OTHER_CALLS: Final = 7
TIMEOUT: Final = 5.0
LABELS: Final = {UNAVAILABLE: "HTTP 503 in answer to one call", UNANSWERED: "a stream that ends without an answer"}
WAYS: Final = ("own", "library")
_UNTIL_SENT: Final = 0.1


@dataclass(frozen=True, slots=True)
class _Outcome:
    seconds: float
    """Until the caller of the faulty call knows that it has failed."""
    lost: int
    """How many of the other calls have no result."""


def faults() -> list[Row]:
    with started("benchmarks.faulty_server") as server:
        found = {
            (fault, way): asyncio.run(_outcome(server.ready_line, fault, library=way == "library"))
            for fault in LABELS
            for way in WAYS
        }
    return [
        row
        for (fault, way), outcome in found.items()
        for row in (
            Row(f"own-code.fault.{fault}.{way}.seconds", f"Known after {LABELS[fault]}: {way}", outcome.seconds, "s"),
            Row(
                f"own-code.fault.{fault}.{way}.lost",
                f"Other calls lost by {LABELS[fault]}: {way}",
                outcome.lost,
                "calls",
            ),
        )
    ]


async def _outcome(url: str, fault: str, *, library: bool) -> _Outcome:
    state = ConnectionState()
    opened: asyncio.Future[SessionConnection] = asyncio.get_running_loop().create_future()
    owner = asyncio.create_task(_own(url, state, opened, library=library))
    session = await opened
    others = [asyncio.create_task(session.call_tool(McpCall(SLOW, {}), TIMEOUT)) for _ in range(OTHER_CALLS)]
    await asyncio.sleep(_UNTIL_SENT)
    began = time.perf_counter()
    with suppress(ServerFailure):
        await session.call_tool(McpCall(fault, {}), TIMEOUT)
    seconds = time.perf_counter() - began
    results = await asyncio.gather(*others, return_exceptions=True)
    owner.cancel()
    await asyncio.gather(owner, return_exceptions=True)
    return _Outcome(seconds, sum(isinstance(result, BaseException) for result in results))


async def _own(url: str, state: ConnectionState, opened: asyncio.Future[SessionConnection], *, library: bool) -> None:
    """Keep the session open in a task of its own, as the product does, and tell its callers when it ends."""
    async with mcp_session(url, state, library=library) as session:
        opened.set_result(session)
        try:
            await asyncio.Event().wait()
        finally:
            state.end("stopped")
