"""The setup of the Slack app: its manifest, the tokens the bot needs, and where to find each token."""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from ai_platform_engineering.settings import Settings, SettingsError

_COMMAND: Final = "- command: /platform\n"
_PAGE: Final = "https://api.slack.com/apps, your app"
BOT_TOKEN_PLACE: Final = f'the "Bot User OAuth Token" (xoxb-...) at {_PAGE}, "OAuth & Permissions"'
APP_TOKEN_PLACE: Final = (
    f'an app-level token (xapp-...) with the scope connections:write at {_PAGE}, "Basic Information", '
    '"App-Level Tokens"'
)
SECRET_PLACE: Final = f'the "Signing Secret" at {_PAGE}, "Basic Information"'


def manifest(settings: Settings) -> str:
    """The app's manifest as YAML, with the configured slash command."""
    text = files(__package__).joinpath("manifest.yaml").read_text(encoding="utf-8")
    return text.replace(_COMMAND, f"- command: {settings.slack_command}\n")


def check_tokens(settings: Settings) -> None:
    """Raise `SettingsError` for each required token that is missing or of the wrong kind."""
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
            "Slack has no way to reach the bot. "
            f"Set SLACK_APP_TOKEN for Socket Mode, which needs no public address: it is {APP_TOKEN_PLACE}. "
            f"Or set SLACK_SIGNING_SECRET to receive Slack's requests over HTTP: it is {SECRET_PLACE}."
        )
    if problems:
        raise SettingsError(*problems)
