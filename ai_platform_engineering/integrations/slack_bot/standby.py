"""Bots on several machines that share a store: one is active, the others are on standby and take over."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final, NoReturn

from starlette.applications import Starlette

from ai_platform_engineering.integrations.slack_bot.http_routes import health_routes
from ai_platform_engineering.integrations.slack_bot.store import BotStoreError, SharedBotStore
from ai_platform_engineering.utils.connection_limits import ConnectionLimits
from ai_platform_engineering.utils.serving import run

logger = logging.getLogger(__name__)

_SECONDS: Final = 1.0


def end_process(error: BotStoreError) -> NoReturn:
    """End at once: another bot may be active, and it continues from the stored state as after a kill."""
    logger.error("%s", error)
    logging.shutdown()
    sys.stdout.flush()
    os._exit(1)


def become_active(
    store: SharedBotStore, listener: socket.socket, limits: ConnectionLimits, on_standby: Callable[[], None]
) -> bool:
    """Wait until this bot is the active one, and answer health checks meanwhile. False if a signal ended the wait."""
    if store.activate():
        return True
    is_active = False

    async def activated() -> None:
        nonlocal is_active
        while not is_active:
            await asyncio.sleep(_SECONDS)
            try:
                is_active = await asyncio.to_thread(store.activate)
            except BotStoreError as error:  # the server may return
                logger.warning("%s", error)

    async def is_ready() -> bool:
        return False

    # Serving closes its socket; the listener is needed for the active bot.
    run(Starlette(routes=health_routes(is_ready)), listener.dup(), on_standby, limits, until=activated)
    return is_active


@asynccontextmanager
async def watched(store: SharedBotStore) -> AsyncIterator[None]:
    """Check every second that this bot is still the active one."""

    async def check() -> None:
        is_reachable = True
        while True:
            await asyncio.sleep(_SECONDS)
            try:
                await asyncio.to_thread(store.check)
                is_reachable = True
            except BotStoreError as error:
                if is_reachable:
                    logger.error("%s", error)
                is_reachable = False

    checks = asyncio.create_task(check(), name="slack-standby")
    try:
        yield
    finally:
        checks.cancel()
        with suppress(asyncio.CancelledError):
            await checks
