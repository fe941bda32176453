"""A Postgres server: a lock for the creation of tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from psycopg import AsyncConnection

_RETRY_SECONDS: Final = 0.1


@asynccontextmanager
async def setup_lock(connection: AsyncConnection[dict[str, Any]], key: int) -> AsyncIterator[None]:
    """Held by one process at a time: the setup of LangGraph's savers and stores fails if two run at once."""
    # Not a lock that waits: a statement that waits for it would keep the setup's concurrent index creation waiting.
    while True:
        locked = await (await connection.execute("SELECT pg_try_advisory_lock(%s) AS ok", (key,))).fetchone()
        if locked is not None and locked["ok"]:
            break
        await asyncio.sleep(_RETRY_SECONDS)
    try:
        yield
    finally:
        await connection.execute("SELECT pg_advisory_unlock(%s)", (key,))
