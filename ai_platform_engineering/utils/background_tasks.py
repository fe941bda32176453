"""Stops tasks that run in the background, also when a cancellation is lost."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

logger = logging.getLogger(__name__)

_REPEAT_SECONDS: Final = 1.0


async def stop_tasks(*tasks: asyncio.Task[Any], repeat_seconds: float = _REPEAT_SECONDS) -> None:
    """Cancel tasks, again and again, until they have ended.

    A single cancellation can be lost: if a connection breaks while psycopg cancels its query, psycopg raises the error
    of the connection instead, which a loop takes for an outage. Up to Python 3.11, `asyncio.wait_for` drops a
    cancellation that comes together with its result.
    """
    pending = {*tasks}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=repeat_seconds)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("%s failed: %s", task.get_name(), type(error).__name__)
