"""The Bolt app with this bot's listeners, and the logger for Bolt and slack_sdk. `serve.py` connects it to Slack."""

from __future__ import annotations

import logging
import re
from typing import Final

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.listeners.assistant import Assistant
from ai_platform_engineering.integrations.slack_bot.listeners.buttons import Buttons, Sessions
from ai_platform_engineering.integrations.slack_bot.listeners.commands import Commands
from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.failures import Failures
from ai_platform_engineering.integrations.slack_bot.listeners.forms import Forms
from ai_platform_engineering.integrations.slack_bot.listeners.messages import Messages
from ai_platform_engineering.integrations.slack_bot.listeners.rating_reason import Reasons

_ANYTHING: Final = re.compile("")
# Bolt also reads the token from the environment, and warns although its client has the same one.
_UNUSED_WARNING: Final = "`token` will be unused"
_TICKET: Final = re.compile(r"ticket=[^&\s'\"]+")


class RedactingFilter(logging.Filter):
    """Removes connection tickets, and tracebacks, which add nothing to the message."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _TICKET.sub("ticket=********", record.getMessage()), ()
        record.exc_info = None
        return _UNUSED_WARNING not in record.msg


def library_log() -> logging.Logger:
    """The logger for Bolt and slack_sdk, which copy its level and filters. At DEBUG they log people's messages, so its
    level is WARNING or higher."""
    log = logging.getLogger(f"{__package__}.slack")
    log.setLevel(max(logging.WARNING, logging.getLogger().level))
    if not log.filters:
        log.addFilter(RedactingFilter())
    return log


def build_app(context: ListenerContext, signing_secret: str, log: logging.Logger) -> AsyncApp:
    """The app. Its identity was requested from Slack at start, so Bolt does not request it for every event."""
    identity, token = context.identity, context.client.token

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=None, team_id=identity.team, bot_user_id=identity.user, bot_id=identity.bot, bot_token=token
        )

    app = AsyncApp(
        name="slack_bot",
        logger=log,
        client=AsyncWebClient(base_url=context.client.base_url, session=context.client.session, logger=log),
        signing_secret=signing_secret,
        authorize=authorize,
        # Slack gets its acknowledgement when the listener returns; the message is stored by then.
        process_before_response=True,
    )
    for listener in (Messages, Assistant, Commands, Buttons, Reasons, Forms, Sessions, Failures):
        listener(context).listen(app)
    app.event(_ANYTHING)(_ignore)
    app.action(_ANYTHING)(_acknowledge)
    return app


async def _ignore() -> None:
    """Events that no listener handles."""


async def _acknowledge(ack: AsyncAck) -> None:
    """A link button, or an element of a form, whose value is read when the form is submitted."""
    await ack()
