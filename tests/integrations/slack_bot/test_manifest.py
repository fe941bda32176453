"""The Slack app has exactly the scopes that the bot uses, and exactly the events that it listens to."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.cli import main
from ai_platform_engineering.integrations.slack_bot.app_setup import manifest
from ai_platform_engineering.integrations.slack_bot.http_routes import EVENTS_PATH
from ai_platform_engineering.settings import Settings, load_settings
from tests.integrations.slack_bot.standin.web_api.methods import METHODS

ROOT = Path(__file__).parents[3]
BOT = ROOT / "ai_platform_engineering/integrations/slack_bot"
ADDRESS = "https://slack-bot.example.com"
SCOPES_OF_EVENTS = {
    "agent_session_stopped": {"assistant:write"},
    "app_home_opened": set[str](),
    "app_mention": {"app_mentions:read"},
    "message.channels": {"channels:history"},
    "message.groups": {"groups:history"},
    "message.im": {"im:history"},
}
READING = {"conversations.replies", "conversations.history"}
FORMER = {"assistant_thread_started"}
"""Events of apps that were made before there was an agent view; new apps cannot subscribe to them."""


def settings(**environ: str) -> Settings:
    return load_settings(environ, env_file=None)


@pytest.fixture
def app() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(manifest(settings()))
    return loaded


def trees() -> Iterator[ast.AST]:
    """The code of the bot, without that which only pretends to be Slack."""
    for file in BOT.rglob("*.py"):
        if "preview" not in file.relative_to(BOT).parts:
            yield from ast.walk(ast.parse(file.read_text(encoding="utf-8")))


def called_methods() -> set[str]:
    """Every method of the Web API that is called, or named as one to call."""
    methods = {name.replace(".", "_"): name for name in METHODS}
    families = {attribute.split("_")[0] for attribute in methods}
    attributes = {node.attr for node in trees() if isinstance(node, ast.Attribute)}
    of_slack = {name for name in attributes & set(vars(AsyncWebClient)) if name.split("_")[0] in families}
    assert of_slack <= set(methods), "the stand-in does not know them"
    strings = {node.value for node in trees() if isinstance(node, ast.Constant)}
    return {methods[attribute] for attribute in of_slack} | {name for name in METHODS if name in strings}


def heard_events() -> set[str]:
    """Every event that a listener takes."""
    heard = set()
    for node in trees():
        match node:
            case ast.Call(func=ast.Attribute(attr="event"), args=[ast.Constant(value=str(event)), *_]):
                heard.add(event)
    return heard


def over_http() -> dict[str, Any]:
    """The app after following the comment at the top of the file."""
    text = re.sub(r"# ((?:request_)?url: )", r"\1", manifest(settings()))
    loaded: dict[str, Any] = yaml.safe_load(text.replace("socket_mode_enabled: true", "socket_mode_enabled: false"))
    return loaded


def test_the_file_to_paste_is_what_the_command_prints() -> None:
    assert (ROOT / "deploy/slack-manifest.yaml").read_text(encoding="utf-8") == manifest(settings())


def test_the_slash_command_is_the_one_that_is_set(app: dict[str, Any]) -> None:
    assert [command["command"] for command in app["features"]["slash_commands"]] == [settings().slack_command]
    other = yaml.safe_load(manifest(settings(SLACK_COMMAND="/ops")))
    assert [command["command"] for command in other["features"]["slash_commands"]] == ["/ops"]


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["slack", "--manifest"]) == 0
    assert yaml.safe_load(capsys.readouterr().out)["display_information"]["name"] == "Platform Engineer"


def test_it_may_call_what_it_calls_and_no_more(app: dict[str, Any]) -> None:
    called = called_methods()
    assert {"chat.startStream", "chat.postMessage", "files.completeUploadExternal", "views.open"} <= called
    needed = {METHODS[method].scope for method in called} - {""}
    needed |= {"commands", "assistant:write"}
    for event in app["settings"]["event_subscriptions"]["bot_events"]:
        needed |= SCOPES_OF_EVENTS[event]
    assert set(app["oauth_config"]["scopes"]["bot"]) == needed
    if called & READING:
        assert needed >= {"channels:history", "groups:history", "im:history"}


def test_it_is_told_what_its_listeners_take(app: dict[str, Any]) -> None:
    subscribed = {event.partition(".")[0] for event in app["settings"]["event_subscriptions"]["bot_events"]}
    assert subscribed == heard_events() - FORMER


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
    } == {ADDRESS + EVENTS_PATH}
