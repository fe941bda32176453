"""Errors as people read them, and as the log keeps them: neither has what was said, nor a token."""

from __future__ import annotations

import logging
import traceback
from secrets import token_hex
from typing import Final

from ai_platform_engineering.integrations.slack_bot.listeners.ephemeral import describe
from ai_platform_engineering.integrations.slack_bot.store import StoreError
from ai_platform_engineering.integrations.slack_bot.words import NOT_KEPT, plain
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

NOT_IN_CHANNEL: Final = "I am not in this channel. Invite me with `/invite`, then ask again."
_SENTENCES: Final = {
    "not_in_channel": NOT_IN_CHANNEL,
    "channel_not_found": NOT_IN_CHANNEL,
    "is_archived": "This channel is archived, so I cannot write here. Ask in another one.",
    "restricted_action": "This workspace does not let me write here. Ask in another channel, or write to me directly.",
    "expired_trigger_id": "That took too long, and Slack gave up waiting. Press the button again.",
    "ratelimited": "Slack asks me to slow down. Try again in a minute.",
}


def trouble(error: Exception) -> str:
    """The sentence for the person; everything else about the error goes to the log."""
    if isinstance(error, StoreError):
        # Where the bot keeps things, and how to help it, is for whoever runs it.
        logger.error("A request from Slack was not taken: %s", error)
        return NOT_KEPT
    if isinstance(error, ReadableError):
        return plain(str(error))
    code = describe(error)
    reference = token_hex(3)
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("A request from Slack failed (%s): %s\n%s", reference, code, frames.rstrip())
    return _SENTENCES.get(code) or (
        "Something went wrong on my side. Try again; if it happens again, tell whoever runs this bot "
        f"and give them this number: {reference}."
    )
