"""What is said about tokens, before anything is started."""

from __future__ import annotations

import pytest

from ai_platform_engineering import cli
from ai_platform_engineering.integrations.slack_bot import serve
from ai_platform_engineering.integrations.slack_bot.app import library_log
from ai_platform_engineering.integrations.slack_bot.app_setup import check_tokens
from ai_platform_engineering.integrations.slack_bot.authentication import TRIES, SlackUnreachableError, authenticate
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Identity
from ai_platform_engineering.settings import Settings, SettingsError, load_settings
from tests.integrations.slack_bot.standin import Broken, Slack, TooMany


def settings_of(environ: dict[str, str]) -> Settings:
    return load_settings(environ, env_file=None)


@pytest.mark.parametrize(
    ("variables", "sentences"),
    [
        ({}, ["SLACK_BOT_TOKEN is not set", "SLACK_APP_TOKEN for Socket Mode", "SLACK_SIGNING_SECRET"]),
        ({"SLACK_BOT_TOKEN": "xoxp-mine", "SLACK_SIGNING_SECRET": "s"}, ["not the token of a bot", "OAuth"]),
        ({"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_APP_TOKEN": "xoxb-mine"}, ["not the token of an app", "xapp-"]),
    ],
)
def test_what_is_not_set_is_said_with_where_to_find_it(variables: dict[str, str], sentences: list[str]) -> None:
    with pytest.raises(SettingsError) as raised:
        check_tokens(settings_of(variables))
    assert all(sentence in str(raised.value) for sentence in sentences)
    assert "mine" not in str(raised.value)


def test_tokens_of_the_right_kind_are_enough() -> None:
    for way in ({"SLACK_APP_TOKEN": "xapp-1"}, {"SLACK_SIGNING_SECRET": "s"}):
        check_tokens(settings_of({"SLACK_BOT_TOKEN": "xoxb-1", **way}))


@pytest.mark.parametrize("socket_mode", [True, False])
async def test_slack_says_who_the_bot_is(slack: Slack, socket_mode: bool) -> None:
    authentication = await authenticate(settings_of(slack.environ(socket_mode=socket_mode)), library_log())
    assert authentication.identity == Identity("T0WORKSPACE", "Workspace", slack.app.user_id, slack.app.bot_id)
    assert len(slack.calls("apps.connections.open")) == socket_mode
    assert bool(authentication.address) == socket_mode
    assert "ticket" not in repr(authentication)


async def test_scopes_that_are_missing_are_named(slack: Slack, caplog: pytest.LogCaptureFixture) -> None:
    await authenticate(settings_of(slack.environ()), library_log())
    assert caplog.text == ""
    slack.app.scopes -= {"files:write", "users:read"}
    await authenticate(settings_of(slack.environ()), library_log())
    assert "lacks the scopes files:write, users:read:" in caplog.text


@pytest.mark.long
async def test_slack_is_asked_again_when_it_does_not_answer(slack: Slack) -> None:
    slack.faults.next("auth.test", Broken(), TooMany(1))
    authentication = await authenticate(settings_of(slack.environ()), library_log(), pause=0.0)
    assert authentication.identity.user == slack.app.user_id


async def test_slack_out_of_reach_is_no_mistake_in_the_settings(slack: Slack) -> None:
    slack.faults.next("auth.test", *[Broken()] * TRIES)
    with pytest.raises(SlackUnreachableError, match="Slack cannot be reached at http://127"):
        await authenticate(settings_of(slack.environ()), library_log(), pause=0.0)
    nowhere = settings_of({**slack.environ(), "SLACK_API_URL": "http://127.0.0.1:9"})
    with pytest.raises(SlackUnreachableError):
        await authenticate(nowhere, library_log(), pause=0.0)


def test_the_command_exits_with_one_where_slack_is_away(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def away(_settings: Settings) -> int:
        raise SlackUnreachableError("Slack cannot be reached.")

    monkeypatch.setattr(serve, "run_slack_bot", away)
    for name, value in {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "s"}.items():
        monkeypatch.setenv(name, value)
    assert cli.main(["slack"]) == 1
    assert capsys.readouterr().err == "platform-engineer: Slack cannot be reached.\n"
