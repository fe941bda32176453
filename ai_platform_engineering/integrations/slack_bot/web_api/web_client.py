"""The connection to Slack's Web API."""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import ClientSession, ClientTimeout
from slack_sdk.web.async_client import AsyncWebClient

ANSWER_SECONDS: Final = 15.0
CONNECT_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)
# slack_sdk writes whole messages to the log it is given, if that is at DEBUG or has no level of its own.
_log.setLevel(logging.INFO)


@asynccontextmanager
async def web_client(token: str, base_url: str, *, seconds: float = ANSWER_SECONDS) -> AsyncIterator[AsyncWebClient]:
    """A client that keeps its connections, never waits for ever, and never does anything twice by itself."""
    timeout = ClientTimeout(total=seconds, connect=min(seconds, CONNECT_SECONDS))
    async with ClientSession(timeout=timeout) as session:
        client = AsyncWebClient(token=token, base_url=base_url, session=session, logger=_log)
        yield without_retries(client)


def without_retries(client: AsyncWebClient) -> AsyncWebClient:
    """The same client; but a call whose answer is lost is not made again by slack_sdk, which would post twice."""
    client = copy.copy(client)
    client.retry_handlers = []
    return client
