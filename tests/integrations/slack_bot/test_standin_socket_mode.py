"""Slack calls a bot through its sockets, as Bolt's Socket Mode expects it."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest
from slack_bolt.async_app import AsyncAck, AsyncApp

from tests.integrations.slack_bot.bots import bolt_app, client_of, in_socket_mode
from tests.integrations.slack_bot.standin import Slack


@pytest.fixture
def app(slack: Slack) -> AsyncApp:
    return bolt_app(slack)


@pytest.fixture
def heard(app: AsyncApp) -> list[str]:
    heard: list[str] = []

    @app.event("message")
    async def hear(event: dict[str, Any]) -> None:
        heard.append(event["text"])

    return heard


async def address(slack: Slack) -> str:
    opened = await client_of(slack).apps_connections_open(app_token=slack.app.app_token)
    return str(opened["url"])


async def test_events_come_and_are_acknowledged(slack: Slack, app: AsyncApp, heard: list[str]) -> None:
    ada = slack.person("ada")
    async with in_socket_mode(slack, app):
        await ada.says(slack.direct(ada), "hello")
        await slack.deliveries.finish()
    assert heard == ["hello"]
    assert [ack.problem for ack in slack.acks] == [""]
    assert slack.violations == []


async def test_a_slash_command_is_answered_with_the_ack(slack: Slack, app: AsyncApp) -> None:
    @app.command("/platform")
    async def help_them(ack: AsyncAck, command: dict[str, Any]) -> None:
        await ack(f"You said {command['text']}")

    ada = slack.person("ada")
    channel = slack.channel("help", ada)
    async with in_socket_mode(slack, app):
        await ada.commands(channel, "/platform", "help")
    assert ada.reads(channel) == "platform (only ada sees it):\n  You said help"


@pytest.mark.parametrize("reason", ["refresh_requested", "warning"])
async def test_a_connection_is_replaced_when_slack_asks(
    slack: Slack, app: AsyncApp, heard: list[str], reason: Any
) -> None:
    ada = slack.person("ada")
    async with in_socket_mode(slack, app):
        await slack.sockets.disconnect(reason)
        await slack.until(lambda: slack.sockets.opened == 2)
        await ada.says(slack.direct(ada), "still there?")
        await slack.deliveries.finish()
    assert heard == ["still there?"]


async def test_a_connection_is_lost(slack: Slack, app: AsyncApp, heard: list[str]) -> None:
    ada = slack.person("ada")
    slack.deliveries.retries = (0.2,) * 1000
    async with in_socket_mode(slack, app):
        await slack.sockets.drop()
        await ada.says(slack.direct(ada), "still there?")
        await slack.deliveries.finish()
    assert slack.acks[0].problem == "connection_failed"
    assert heard == ["still there?"]
    assert slack.sockets.opened == 2
    assert slack.violations == []


async def test_what_has_no_ack_in_three_seconds_comes_again(slack: Slack) -> None:
    slack.deliveries.ack_seconds = 0.1
    ada = slack.person("ada")
    async with aiohttp.ClientSession() as session, session.ws_connect(await address(slack)) as socket:
        hello = await socket.receive_json()
        assert (hello["type"], hello["num_connections"]) == ("hello", 1)
        await ada.says(slack.direct(ada), "hello")
        first = await socket.receive_json()
        slack.deliveries.ack_seconds = 60
        second = await socket.receive_json()
        assert first["payload"] == second["payload"]
        assert first["envelope_id"] != second["envelope_id"]
        assert (first["retry_attempt"], second["retry_attempt"]) == (0, 1)
        await socket.send_json({"envelope_id": second["envelope_id"]})
        await slack.deliveries.finish()
        await socket.send_json({"envelope_id": "made up"})
        await slack.until(lambda: len(slack.violations) == 2)
    assert [violation.kind for violation in slack.violations] == ["late_ack", "unknown_ack"]


async def test_several_connections_take_turns(slack: Slack) -> None:
    ada = slack.person("ada")
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(await address(slack)) as one,
        session.ws_connect(await address(slack)) as other,
    ):
        assert (await one.receive_json())["num_connections"] == 1
        assert (await other.receive_json())["num_connections"] == 2
        for text in ("first", "second"):
            await ada.says(slack.direct(ada), text)
        texts = set()
        for socket in (one, other):
            envelope = await socket.receive_json()
            texts.add(envelope["payload"]["event"]["text"])
            await socket.send_json({"envelope_id": envelope["envelope_id"]})
        await slack.deliveries.finish()
    assert texts == {"first", "second"}


async def test_an_address_is_good_for_one_connection(slack: Slack) -> None:
    url = await address(slack)
    async with aiohttp.ClientSession() as session, session.ws_connect(url):
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(url)


async def test_ten_connections_are_enough(slack: Slack) -> None:
    async with aiohttp.ClientSession() as session:
        sockets = [await session.ws_connect(await address(slack)) for _ in range(10)]
        await slack.until(lambda: len(slack.sockets.connections) == 10)
        refused = await session.ws_connect(await address(slack))
        answer = await refused.receive_json()
        assert (answer["type"], answer["reason"]) == ("disconnect", "too_many_websockets")
        await asyncio.gather(*(socket.close() for socket in (*sockets, refused)))
