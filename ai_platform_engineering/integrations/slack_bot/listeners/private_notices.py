"""Notices that only one person sees: ephemeral messages and modals without inputs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from aiohttp import ClientError
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from ai_platform_engineering.integrations.slack_bot.listeners.requests import SlackLocation

logger = logging.getLogger(__name__)

_SECTION_LENGTH: Final = 3_000


async def post_ephemeral(
    client: AsyncWebClient, location: SlackLocation, text: str, blocks: Sequence[dict[str, Any]] | None = None
) -> None:
    """Show `text` to the person at `location` only. A failure is logged and has no other effect."""
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
        logger.warning("No ephemeral message to %s in %s: %s", location.person.id, location.channel, describe(error))


def notice_view(sentence: str, title: str = "Not done") -> dict[str, Any]:
    """A modal with one sentence, shown instead of a form that cannot be answered."""
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": title},
        "close": {"type": "plain_text", "text": "Close"},
        "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": sentence[:_SECTION_LENGTH]}}],
    }


def describe(error: Exception) -> str:
    """Slack's error code, or the type of the error. The error text is left out: it may contain people's messages."""
    code = error.response.get("error") if isinstance(error, SlackApiError) else None
    return str(code or type(error).__name__)
