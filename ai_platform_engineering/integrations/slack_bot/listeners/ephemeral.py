"""Telling one person something, where nobody else sees it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from aiohttp import ClientError
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from ai_platform_engineering.integrations.slack_bot.listeners.requests import SlackLocation

logger = logging.getLogger(__name__)


async def post_ephemeral(
    client: AsyncWebClient, location: SlackLocation, text: str, blocks: Sequence[dict[str, Any]] | None = None
) -> None:
    """Show `text` to that person alone. Nothing depends on it: what fails is logged."""
    try:
        if location.response_url and not location.thread_ts:
            webhook = AsyncWebhookClient(location.response_url, session=client.session, logger=client.logger)
            answer = await webhook.send(
                text=text, blocks=blocks, response_type="ephemeral", replace_original=False, delete_original=False
            )
            if answer.status_code == 200:
                return
        await client.chat_postEphemeral(
            channel=location.channel,
            user=location.person.id,
            thread_ts=location.thread_ts or None,
            text=text,
            blocks=blocks,
        )
    except (SlackClientError, ClientError, OSError, TimeoutError) as error:
        logger.warning("Could not tell %s something in %s: %s", location.person.id, location.channel, describe(error))


def describe(error: Exception) -> str:
    """What went wrong, without what was said: Slack's word for it, or the kind of error."""
    code = error.response.get("error") if isinstance(error, SlackApiError) else None
    return str(code or type(error).__name__)
