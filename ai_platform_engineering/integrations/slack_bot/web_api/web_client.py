"""The HTTP client for Slack's Web API, and the upload of a file's content."""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.web_api.outcomes import Done, Outcome, RequestNotSent, of_status

ANSWER_SECONDS: Final = 15.0
CONNECT_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)
# slack_sdk logs whole messages if its logger is at DEBUG or has no level of its own.
_log.setLevel(logging.INFO)


@asynccontextmanager
async def web_client(token: str, base_url: str, *, seconds: float = ANSWER_SECONDS) -> AsyncIterator[AsyncWebClient]:
    """A client with pooled connections, a timeout for every call, and no automatic retries."""
    timeout = ClientTimeout(total=seconds, connect=min(seconds, CONNECT_SECONDS))
    async with ClientSession(timeout=timeout) as session:
        client = AsyncWebClient(token=token, base_url=base_url, session=session, logger=_log)
        yield without_retries(client)


def without_retries(client: AsyncWebClient) -> AsyncWebClient:
    """The same client without slack_sdk's retries: retrying a call whose response was lost would post twice."""
    client = copy.copy(client)
    client.retry_handlers = []
    return client


async def upload(client: AsyncWebClient, url: str, content: bytes) -> Outcome:
    """Upload a file's content to the URL that Slack has issued. The file stays invisible until it is shared."""
    try:
        async with AsyncExitStack() as stack:
            session = client.session
            if session is None:
                session = await stack.enter_async_context(ClientSession())
            ssl = True if client.ssl is None else client.ssl
            async with session.post(url, data=content, proxy=client.proxy, ssl=ssl) as response:
                return Done({}) if response.status == 200 else of_status(response.status, response.headers)
    except (ClientError, TimeoutError, OSError) as error:
        return RequestNotSent(type(error).__name__)
