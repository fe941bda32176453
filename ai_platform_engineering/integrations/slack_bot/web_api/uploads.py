"""The content of a file, on its way to the address that Slack gives for it. Nobody sees it before it is shared."""

from __future__ import annotations

from contextlib import AsyncExitStack

from aiohttp import ClientError, ClientSession
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.web_api.outcomes import Done, Outcome, Unsent, of_status


async def upload(client: AsyncWebClient, url: str, content: bytes) -> Outcome:
    try:
        async with AsyncExitStack() as stack:
            session = client.session
            if session is None:
                session = await stack.enter_async_context(ClientSession())
            ssl = True if client.ssl is None else client.ssl
            async with session.post(url, data=content, proxy=client.proxy, ssl=ssl) as response:
                return Done({}) if response.status == 200 else of_status(response.status, response.headers)
    except (ClientError, TimeoutError, OSError) as error:
        return Unsent(type(error).__name__)
