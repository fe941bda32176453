"""Authentication with Slack at start: checks the tokens and reads the bot's identity."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

import yaml
from aiohttp import ClientError
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.app_setup import APP_TOKEN_PLACE, BOT_TOKEN_PLACE, manifest
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Identity
from ai_platform_engineering.settings import Settings, SettingsError
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

TRIES: Final = 4
_WRONG_TOKEN: Final = frozenset(
    {"invalid_auth", "not_authed", "token_expired", "token_revoked", "account_inactive", "not_allowed_token_type"}
)


class SlackUnreachableError(ReadableError):
    """Slack did not respond."""


@dataclass(frozen=True, slots=True)
class Authentication:
    """The bot's identity. `address` is the Socket Mode address, valid for a short time and one connection. It is a
    secret, because it allows others to connect in the bot's place."""

    identity: Identity
    address: str = field(default="", repr=False)


async def authenticate(settings: Settings, log: logging.Logger, pause: float = 1.0) -> Authentication:
    """Authenticate the bot. Raises `SettingsError` if Slack rejects a token. While Slack does not respond, it retries
    with a backoff that starts at `pause` seconds."""
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
            _warn_about_scopes(str(answer.headers.get("x-oauth-scopes", "")), settings)
            if app is None:
                return Authentication(identity)
            opened = await client.apps_connections_open(app_token=app.get_secret_value())
            return Authentication(identity, opened["url"])
        except SlackApiError as error:
            problem = _problem(error)
            if problem:
                raise SettingsError(problem) from None
            wait = max(wait, float(error.response.headers.get("Retry-After", 0)))
        except (ClientError, OSError, TimeoutError):
            pass
        if attempt < TRIES - 1:
            await asyncio.sleep(wait)
    raise SlackUnreachableError(
        f"Slack cannot be reached at {settings.slack_api_url}: check that this machine can connect to it, and, "
        "behind a proxy, set HTTPS_PROXY."
    )


def _warn_about_scopes(scopes: str, settings: Settings) -> None:
    """Log missing scopes. The bot starts anyway, because most functions work without some of them."""
    wanted = yaml.safe_load(manifest(settings))["oauth_config"]["scopes"]["bot"]
    if missing := sorted(set(wanted) - {scope.strip() for scope in scopes.split(",")}):
        logger.warning(
            "The Slack app lacks the scopes %s: some functions will fail. Paste the manifest again "
            "(platform-engineer slack --manifest), and reinstall the app.",
            ", ".join(missing),
        )


def _problem(error: SlackApiError) -> str | None:
    """The sentence for an error that a retry cannot fix; None for others."""
    code = error.response.get("error")
    is_app = error.response.api_url.endswith("apps.connections.open")
    variable, place = ("SLACK_APP_TOKEN", APP_TOKEN_PLACE) if is_app else ("SLACK_BOT_TOKEN", BOT_TOKEN_PLACE)
    if code in _WRONG_TOKEN:
        return f"Slack rejects {variable} ({code}): it must be {place}."
    if code == "missing_scope":
        return f"{variable} lacks the scope {error.response.get('needed')}: create {place}, and set it."
    return None
