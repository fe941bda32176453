"""The Slack app: Bolt, with the listeners of this bot. How requests reach it is serve.py's business."""

from __future__ import annotations

import logging
import re
from typing import Final

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.listeners.assistant import Assistant
from ai_platform_engineering.integrations.slack_bot.listeners.buttons import Buttons
from ai_platform_engineering.integrations.slack_bot.listeners.commands import Commands
from ai_platform_engineering.integrations.slack_bot.listeners.failures import Failures
from ai_platform_engineering.integrations.slack_bot.listeners.forms import Forms
from ai_platform_engineering.integrations.slack_bot.listeners.listening import Listening
from ai_platform_engineering.integrations.slack_bot.listeners.messages import Messages
from ai_platform_engineering.integrations.slack_bot.listeners.reason import Reasons
from ai_platform_engineering.integrations.slack_bot.listeners.sessions import Sessions

_ANYTHING: Final = re.compile("")


def build_app(listening: Listening, signing_secret: str, log: logging.Logger) -> AsyncApp:
    """An app that knows who it is: Slack was asked at start, and not for every request."""
    identity, token = listening.identity, listening.client.token

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=None, team_id=identity.team, bot_user_id=identity.user, bot_id=identity.bot, bot_token=token
        )

    app = AsyncApp(
        name="slack_bot",
        logger=log,
        client=AsyncWebClient(base_url=listening.client.base_url, session=listening.client.session, logger=log),
        signing_secret=signing_secret,
        authorize=authorize,
        # Slack has its answer when a listener returns: what was said is kept by then.
        process_before_response=True,
    )
    for noun in (Messages, Assistant, Commands, Buttons, Reasons, Forms, Sessions, Failures):
        noun(listening).listen(app)
    app.event(_ANYTHING)(_nothing)
    app.action(_ANYTHING)(_acknowledge)
    return app


async def _nothing() -> None:
    """What the bot was told without being asked to do something."""


async def _acknowledge(ack: AsyncAck) -> None:
    """A link that looks like a button, or an element of a form: it is read when the form is submitted."""
    await ack()
