"""The tokens that the bot needs, and where people find them."""

from __future__ import annotations

from typing import Final

from ai_platform_engineering.settings import Settings, SettingsError

_PAGE: Final = "https://api.slack.com/apps, your app"
BOT_TOKEN_PLACE: Final = f'the "Bot User OAuth Token" (xoxb-...) at {_PAGE}, "OAuth & Permissions"'
APP_TOKEN_PLACE: Final = (
    f'an app-level token (xapp-...) with the scope connections:write at {_PAGE}, "Basic Information", '
    '"App-Level Tokens"'
)
SECRET_PLACE: Final = f'the "Signing Secret" at {_PAGE}, "Basic Information"'


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
