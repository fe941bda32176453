"""Errors as sentences for people and as log entries; neither contains messages of people or tokens."""

from __future__ import annotations

import logging
import traceback
from secrets import token_hex
from typing import Final

from ai_platform_engineering.integrations.slack_bot.listeners.private_notices import describe
from ai_platform_engineering.integrations.slack_bot.store import BotStoreError
from ai_platform_engineering.integrations.slack_bot.words import NOT_STORED, plain
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.logs import FRAMES

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


def error_sentence(error: Exception) -> str:
    """Log the error, and return a sentence for the person."""
    if isinstance(error, BotStoreError):
        # The location of the store and the remedy are for operators only.
        logger.error("A request from Slack was not accepted: %s", error)
        return NOT_STORED
    if isinstance(error, ReadableError):
        return plain(str(error))
    code = describe(error)
    reference = token_hex(3)
    frames = "".join(traceback.format_tb(error.__traceback__))
    logger.error("A request from Slack failed (%s): %s", reference, code, extra={FRAMES: frames})
    return _SENTENCES.get(code) or (
        "Something went wrong on my side. Try again; if it happens again, give the operator of this bot "
        f"this number: {reference}."
    )
