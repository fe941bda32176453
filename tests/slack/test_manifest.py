"""The app that people make in Slack may do what the bot does, and is told what the bot listens to; no more, no less."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ai_platform_engineering.integrations.slack_bot.manifest import manifest
from ai_platform_engineering.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
ADDRESS = "https://slack-bot.example.com"


def settings(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


@pytest.fixture
def app() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(manifest(settings()))
    return loaded


def over_http() -> dict[str, Any]:
    """The app of somebody who does what the comment at the top of the file says."""
    text = re.sub(r"# ((?:request_)?url: )", r"\1", manifest(settings()))
    loaded: dict[str, Any] = yaml.safe_load(text.replace("socket_mode_enabled: true", "socket_mode_enabled: false"))
    return loaded


def test_the_file_to_paste_is_what_the_command_prints() -> None:
    assert (ROOT / "deploy/slack-manifest.yaml").read_text(encoding="utf-8") == manifest(settings())


def test_the_slash_command_is_the_one_that_is_set(app: dict[str, Any]) -> None:
    assert [command["command"] for command in app["features"]["slash_commands"]] == [settings().slack_command]
    other = yaml.safe_load(manifest(settings(SLACK_COMMAND="/ops")))
    assert [command["command"] for command in other["features"]["slash_commands"]] == ["/ops"]


def test_slack_takes_it(app: dict[str, Any]) -> None:
    assert set(app) == {"display_information", "features", "oauth_config", "settings"}
    assert len(app["display_information"]["name"]) <= 35
    assert len(app["display_information"]["description"]) <= 140
    assert len(app["features"]["agent_view"]["agent_description"]) <= 300
    assert all(set(prompt) == {"title", "message"} for prompt in app["features"]["agent_view"]["suggested_prompts"])
    assert len(app["features"]["slash_commands"][0]["description"]) <= 2000
    for names in (app["oauth_config"]["scopes"]["bot"], app["settings"]["event_subscriptions"]["bot_events"]):
        assert len(names) == len(set(names))


def test_people_can_write_to_it(app: dict[str, Any]) -> None:
    home = app["features"]["app_home"]
    assert home["messages_tab_enabled"]
    assert not home["messages_tab_read_only_enabled"]


def test_with_socket_mode_no_address_is_named(app: dict[str, Any]) -> None:
    assert app["settings"]["socket_mode_enabled"]
    assert ADDRESS not in yaml.safe_dump(app)


def test_over_http_everything_goes_to_one_address() -> None:
    app = over_http()
    assert not app["settings"]["socket_mode_enabled"]
    assert {
        app["settings"]["event_subscriptions"]["request_url"],
        app["settings"]["interactivity"]["request_url"],
        *(command["url"] for command in app["features"]["slash_commands"]),
    } == {f"{ADDRESS}/slack/events"}
