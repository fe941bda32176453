"""Asking Slack who the bot is: whether its tokens are right is known before anything else is started."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from aiohttp import ClientError
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.listeners.identity import Identity
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.errors import ReadableError

TRIES: Final = 4
_PAGE: Final = "https://api.slack.com/apps, your app"
BOT_TOKEN_PLACE: Final = f'the "Bot User OAuth Token" (xoxb-...) at {_PAGE}, "OAuth & Permissions"'
APP_TOKEN_PLACE: Final = (
    f'an app-level token (xapp-...) with the scope connections:write at {_PAGE}, "Basic Information", '
    '"App-Level Tokens"'
)
SECRET_PLACE: Final = f'the "Signing Secret" at {_PAGE}, "Basic Information"'
_WRONG_TOKEN: Final = frozenset(
    {"invalid_auth", "not_authed", "token_expired", "token_revoked", "account_inactive", "not_allowed_token_type"}
)


class UnreachableError(ReadableError):
    """Slack did not answer."""


def check_tokens(settings: Settings) -> None:
    """That every token is set that is needed, and is of its kind."""
    bot, app, secret = settings.slack_bot_token, settings.slack_app_token, settings.slack_signing_secret
    problems = []
    if bot is None:
        problems.append(f"SLACK_BOT_TOKEN is not set: it is {BOT_TOKEN_PLACE}.")
    elif not bot.get_secret_value().startswith("xoxb-"):
        problems.append(f"SLACK_BOT_TOKEN is not the token of a bot: it must be {BOT_TOKEN_PLACE}.")
    if app is not None and not app.get_secret_value().startswith("xapp-"):
        problems.append(f"SLACK_APP_TOKEN is not the token of an app: it must be {APP_TOKEN_PLACE}.")
    if app is None and secret is None:
        problems.append(
            "How is Slack to reach the bot? "
            f"Set SLACK_APP_TOKEN for Socket Mode, which needs no address: it is {APP_TOKEN_PLACE}. "
            f"Or set SLACK_SIGNING_SECRET to be called over HTTP: it is {SECRET_PLACE}."
        )
    if problems:
        raise SettingsError(*problems)


async def introduce(settings: Settings, log: logging.Logger, pause: float = 1.0) -> Identity:
    """Who the bot is; a SettingsError if Slack does not take a token. Tried some times, `pause` seconds apart at first,
    where Slack does not answer."""
    bot, app = settings.slack_bot_token, settings.slack_app_token
    client = AsyncWebClient(
        token=bot.get_secret_value() if bot else None,
        base_url=settings.slack_api_url,
        timeout=10,
        logger=log,
        retry_handlers=[],
    )
    for attempt in range(TRIES):
        if attempt:
            await asyncio.sleep(pause * 2 ** (attempt - 1))
        try:
            answer = await client.auth_test()
            identity = Identity(answer["team_id"], answer["team"], answer["user_id"], answer.get("bot_id") or "")
            if not identity.bot:
                raise SettingsError(f"SLACK_BOT_TOKEN is not the token of a bot: it must be {BOT_TOKEN_PLACE}.")
            if app is not None:
                await client.apps_connections_open(app_token=app.get_secret_value())
            return identity
        except SlackApiError as error:
            problem = _problem(error)
            if problem:
                raise SettingsError(problem) from None
        except (ClientError, OSError, TimeoutError):
            continue
    raise UnreachableError(
        f"Slack cannot be reached at {settings.slack_api_url}: see whether this machine may connect to it, and, "
        "behind a proxy, set HTTPS_PROXY."
    )


def _problem(error: SlackApiError) -> str | None:
    """The sentence for what trying again does not help against."""
    code = error.response.get("error")
    is_app = error.response.api_url.endswith("apps.connections.open")
    variable, place = ("SLACK_APP_TOKEN", APP_TOKEN_PLACE) if is_app else ("SLACK_BOT_TOKEN", BOT_TOKEN_PLACE)
    if code in _WRONG_TOKEN:
        return f"Slack does not take {variable} ({code}): it must be {place}."
    if code == "missing_scope":
        return f"{variable} lacks the scope {error.response.get('needed')}: make {place}, and set it."
    return None
