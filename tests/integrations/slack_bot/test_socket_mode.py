"""Socket Mode: the connection comes back, however it was lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from slack_bolt.async_app import AsyncApp

from ai_platform_engineering.integrations.slack_bot.app import library_log
from ai_platform_engineering.integrations.slack_bot.socket_mode import SocketModeConnection
from tests.integrations.slack_bot.bots import bolt_app
from tests.integrations.slack_bot.standin import Broken, Slack
from tests.utils.a2a_common.job_replicas import eventually


@asynccontextmanager
async def connected(slack: Slack, app: AsyncApp) -> AsyncIterator[SocketModeConnection]:
    async with SocketModeConnection(app, slack.app.app_token, library_log(), ping_seconds=0.1) as connection:
        yield connection


def listening_app(slack: Slack) -> tuple[AsyncApp, list[str]]:
    app, heard = bolt_app(slack), []

    async def hear(event: dict[str, Any]) -> None:
        heard.append(event["text"])

    app.event("message")(hear)
    return app, heard


@pytest.mark.parametrize("way", ["asked", "dropped"])
async def test_a_connection_that_ends_is_made_again(slack: Slack, way: str) -> None:
    app, heard = listening_app(slack)
    ada = slack.person("ada")
    async with connected(slack, app) as connection:
        assert await connection.ready()
        await (slack.sockets.disconnect() if way == "asked" else slack.sockets.drop())
        # On a busy machine a ping may be late, and then the connection is made once more.
        await slack.until(lambda: slack.sockets.opened >= 2)
        await slack.connected()
        await ada.says(slack.direct(ada), "still there?")
        await slack.until(lambda: heard == ["still there?"])
        await eventually(connection.ready)
    assert slack.violations == []


async def test_an_address_that_is_no_good_any_more_is_not_tried_for_ever(slack: Slack) -> None:
    app, _ = listening_app(slack)
    tickets = slack.state.socket_tickets
    forgetting = asyncio.create_task(_forget(tickets))
    connecting = SocketModeConnection(app, slack.app.app_token, library_log(), ping_seconds=0.1)
    try:
        entering = asyncio.create_task(connecting.__aenter__())
        await slack.until(lambda: len(slack.calls("apps.connections.open")) > 1)
        assert not await connecting.ready()
        forgetting.cancel()
        await entering
        assert await connecting.ready()
    finally:
        await connecting.__aexit__(None, None, None)


async def test_an_address_to_begin_with_that_came_too_late_is_asked_for_anew(slack: Slack) -> None:
    app, _ = listening_app(slack)
    stale = slack.api_url.replace("http", "ws").replace("/api/", "/link/?ticket=stale")
    async with SocketModeConnection(
        app, slack.app.app_token, library_log(), ping_seconds=0.1, address=stale
    ) as connection:
        assert await connection.ready()
    assert len(slack.calls("apps.connections.open")) == 1
    assert slack.violations == []


async def _forget(tickets: dict[str, float]) -> None:
    while True:
        tickets.clear()
        await asyncio.sleep(0)


async def test_slack_away_at_start_is_waited_for(slack: Slack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ai_platform_engineering.integrations.slack_bot.socket_mode.CONNECT_SECONDS", 0.05)
    app, _ = listening_app(slack)
    slack.faults.next("apps.connections.open", Broken(), Broken())
    async with connected(slack, app) as connection:
        assert not await connection.ready()
        await slack.connected()
        await slack.until(lambda: slack.sockets.opened == 1)
    assert slack.violations == []


def test_the_log_of_the_libraries_does_not_let_others_in(caplog: pytest.LogCaptureFixture) -> None:
    log = library_log()
    log.debug("what people say")
    try:
        raise OSError("wss://slack/link/?ticket=t0p-secret&app_id=1")
    except OSError as error:
        log.exception(f"Failed to connect (error: {error}); Retrying...")
    (record,) = caplog.records
    assert record.getMessage() == "Failed to connect (error: wss://slack/link/?ticket=********&app_id=1); Retrying..."
    assert "t0p-secret" not in caplog.text
    assert log.level >= logging.WARNING
