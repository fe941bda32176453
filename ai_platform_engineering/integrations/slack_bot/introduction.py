"""Asking Slack who the bot is: whether its tokens are right is known before anything else is started."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

import yaml
from aiohttp import ClientError
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.listeners.identity import Identity
from ai_platform_engineering.integrations.slack_bot.manifest import manifest
from ai_platform_engineering.integrations.slack_bot.tokens import APP_TOKEN_PLACE, BOT_TOKEN_PLACE
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

TRIES: Final = 4
_WRONG_TOKEN: Final = frozenset(
    {"invalid_auth", "not_authed", "token_expired", "token_revoked", "account_inactive", "not_allowed_token_type"}
)


class UnreachableError(ReadableError):
    """Slack did not answer."""


@dataclass(frozen=True, slots=True)
class Introduction:
    """Who the bot is. `address` is where Slack waits for it in Socket Mode, for a short time and one connection; who
    knows it can connect in its place."""

    identity: Identity
    address: str = field(default="", repr=False)


async def introduce(settings: Settings, log: logging.Logger, pause: float = 1.0) -> Introduction:
    """Raises `SettingsError` if Slack does not take a token. Tried some times, `pause` seconds apart at first, where
    Slack does not answer."""
    bot, app = settings.slack_bot_token, settings.slack_app_token
    client = AsyncWebClient(
        token=bot.get_secret_value() if bot else None,
        base_url=settings.slack_api_url,
        timeout=10,
        logger=log,
        retry_handlers=[],
    )
    for attempt in range(TRIES):
        wait = pause * 2**attempt
        try:
            answer = await client.auth_test()
            identity = Identity(answer["team_id"], answer["team"], answer["user_id"], answer.get("bot_id") or "")
            if not identity.bot:
                raise SettingsError(f"SLACK_BOT_TOKEN is not the token of a bot: it must be {BOT_TOKEN_PLACE}.")
            _tell_missing(str(answer.headers.get("x-oauth-scopes", "")), settings)
            if app is None:
                return Introduction(identity)
            opened = await client.apps_connections_open(app_token=app.get_secret_value())
            return Introduction(identity, opened["url"])
        except SlackApiError as error:
            problem = _problem(error)
            if problem:
                raise SettingsError(problem) from None
            wait = max(wait, float(error.response.headers.get("Retry-After", 0)))
        except (ClientError, OSError, TimeoutError):
            pass
        if attempt < TRIES - 1:
            await asyncio.sleep(wait)
    raise UnreachableError(
        f"Slack cannot be reached at {settings.slack_api_url}: see whether this machine may connect to it, and, "
        "behind a proxy, set HTTPS_PROXY."
    )


def _tell_missing(scopes: str, settings: Settings) -> None:
    """Most things work without one or the other scope, so that it is no reason not to start."""
    wanted = yaml.safe_load(manifest(settings))["oauth_config"]["scopes"]["bot"]
    if missing := sorted(set(wanted) - {scope.strip() for scope in scopes.split(",")}):
        logger.warning(
            "The Slack app lacks the scopes %s: some of what the bot does will fail. Paste the manifest again "
            "(platform-engineer slack --manifest), and reinstall the app.",
            ", ".join(missing),
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
