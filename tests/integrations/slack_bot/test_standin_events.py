"""Slack calls a bot over HTTP, as Bolt expects it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from slack_bolt.async_app import AsyncAck, AsyncApp

from tests.integrations.slack_bot.bots import bolt_app, client_of, over_http
from tests.integrations.slack_bot.standin import Slack


@pytest.fixture
def app(slack: Slack) -> AsyncApp:
    return bolt_app(slack)


def heard_by(app: AsyncApp) -> list[dict[str, Any]]:
    """Everything that the app receives as an event."""
    heard: list[dict[str, Any]] = []

    async def hear(body: dict[str, Any]) -> None:
        heard.append(body)

    app.event("app_mention")(hear)
    app.event("message")(hear)
    return heard


async def test_a_mention_in_a_channel_comes_as_a_mention_and_as_a_message(slack: Slack, app: AsyncApp) -> None:
    heard = heard_by(app)
    ada = slack.person("ada")
    channel = slack.channel("help", ada)
    async with over_http(slack, app):
        question = await ada.says(channel, f"{slack.mention} hello")
        await slack.deliveries.finish()
    events = {body["event"]["type"]: body["event"] for body in heard}
    assert set(events) == {"app_mention", "message"}
    assert {event["ts"] for event in events.values()} == {question.ts}
    assert events["message"]["channel_type"] == "channel"
    assert len({body["event_id"] for body in heard}) == 2
    assert [ack.problem for ack in slack.acks] == ["", ""]
    assert slack.violations == []


async def test_a_direct_message_comes_once(slack: Slack, app: AsyncApp) -> None:
    heard = heard_by(app)
    ada = slack.person("ada")
    async with over_http(slack, app):
        await ada.says(slack.direct(ada), f"{slack.mention} hello")
        await slack.deliveries.finish()
    (event,) = [body["event"] for body in heard]
    assert (event["type"], event["channel_type"], event["user"]) == ("message", "im", ada.id)


async def test_an_app_hears_only_what_it_has_subscribed_to_and_where_it_is(slack: Slack, app: AsyncApp) -> None:
    heard = heard_by(app)
    ada = slack.person("ada")
    slack.app.events -= {"message.groups"}
    async with over_http(slack, app):
        await ada.says(slack.channel("private", ada, kind="group"), "hello")
        await ada.says(slack.channel("elsewhere", ada, with_bot=False), f"{slack.mention} hello")
        await slack.deliveries.finish()
    assert heard == []


async def test_edits_and_deletions_are_told(slack: Slack, app: AsyncApp) -> None:
    heard = heard_by(app)
    ada = slack.person("ada")
    channel = slack.channel("help", ada)
    async with over_http(slack, app):
        message = await ada.says(channel, "helo")
        await ada.edits(message, "hello")
        await ada.deletes(message)
        await slack.deliveries.finish()
    subtypes = [body["event"].get("subtype") for body in heard]
    assert sorted(filter(None, subtypes)) == ["message_changed", "message_deleted"]
    assert slack.transcript(channel).messages == ()


async def test_an_answer_in_the_thread_is_seen(slack: Slack, app: AsyncApp) -> None:
    @app.event("message")
    async def answer(event: dict[str, Any], say: Any) -> None:
        await say(text="Hello, too", thread_ts=event["ts"])

    @app.event("app_mention")
    async def ignore() -> None:
        pass

    ada = slack.person("ada")
    channel = slack.channel("help", ada)
    async with over_http(slack, app):
        question = await ada.says(channel, f"{slack.mention} hello")
        await slack.until(lambda: "Hello, too" in ada.reads(channel, question.ts))
        await slack.deliveries.finish()
    assert slack.text(channel, question.ts) == f"ada:\n  {slack.mention} hello\n\nplatform:\n  Hello, too"


async def test_slack_verifies_an_address(slack: Slack, app: AsyncApp) -> None:
    async with over_http(slack, app) as route:
        response = await route.verify_url("prove it")
    assert response.status_code == 200
    assert "prove it" in response.text


@pytest.mark.parametrize("wrong", [{"secret": "another app's"}, {"signature": "v0=0"}, {"age": 301.0}, {"age": -301.0}])
async def test_requests_with_a_bad_signature_can_be_sent(slack: Slack, app: AsyncApp, wrong: dict[str, Any]) -> None:
    heard = heard_by(app)
    body = '{"type": "event_callback", "event": {"type": "app_mention"}}'
    async with over_http(slack, app) as route:
        good = await route.post(body, "application/json")
        bad = await route.post(body, "application/json", **wrong)
    assert (good.status_code, bad.status_code, len(heard)) == (200, 401, 1)


async def test_the_bot_is_told_of_its_own_messages(slack: Slack) -> None:
    secret = slack.app.signing_secret
    app = AsyncApp(name="bot", client=client_of(slack), signing_secret=secret, ignoring_self_events_enabled=False)
    heard = heard_by(app)
    channel = slack.channel("help")
    async with over_http(slack, app):
        posted = await app.client.chat_postMessage(channel=channel.id, text="one")
        await app.client.chat_update(channel=channel.id, ts=posted["ts"], text="two")
        await app.client.chat_delete(channel=channel.id, ts=posted["ts"])
        await slack.deliveries.finish()
        slack.echoes = False
        await app.client.chat_postMessage(channel=channel.id, text="three")
        await slack.deliveries.finish()
    events = [body["event"] for body in heard]
    assert sorted(event.get("subtype", "") for event in events) == ["", "message_changed", "message_deleted"]
    assert next(event for event in events if "subtype" not in event)["bot_id"] == slack.app.bot_id


async def test_an_event_without_an_ack_is_told_again(slack: Slack, app: AsyncApp) -> None:
    heard: list[Any] = []

    @app.middleware
    async def fail_first(req: Any, next: Any) -> Any:  # noqa: A002
        heard.append(req.headers.get("x-slack-retry-num"))
        if len(heard) == 1:
            raise RuntimeError("not now")
        return await next()

    heard_by(app)
    slack.deliveries.retries = (0.0, 0.0)
    ada = slack.person("ada")
    async with over_http(slack, app):
        await ada.says(slack.direct(ada), "hello")
        await slack.deliveries.finish()
    assert heard == [None, ["1"]]
    assert [ack.problem for ack in slack.acks] == ["http_error", ""]
    assert [violation.kind for violation in slack.violations] == ["no_ack"]


async def test_an_ack_after_three_seconds_is_late(slack: Slack, app: AsyncApp) -> None:
    late = asyncio.Event()

    @app.action("slow")
    async def slow(ack: AsyncAck) -> None:
        await late.wait()
        await ack()

    ada = slack.person("ada")
    channel = slack.channel("help", ada)
    button = {"type": "button", "action_id": "slow", "text": {"type": "plain_text", "text": "Slow"}}
    async with over_http(slack, app):
        await app.client.chat_postMessage(
            channel=channel.id, blocks=[{"type": "actions", "elements": [button]}], text="x"
        )
        await slack.deliveries.finish()
        slack.violations.clear()
        slack.deliveries.ack_seconds = 0.05
        ack = await ada.presses(slack.transcript(channel).messages[-1], "Slow")
        late.set()
    assert ack.problem == "http_timeout"
    assert [violation.kind for violation in slack.violations] == ["late_ack"]


async def test_every_event_can_come_twice(slack: Slack, app: AsyncApp) -> None:
    heard = heard_by(app)
    slack.deliveries.copies = 2
    ada = slack.person("ada")
    async with over_http(slack, app):
        await ada.says(slack.direct(ada), "hello")
        await slack.deliveries.finish()
    first, second = heard
    assert first["event_id"] == second["event_id"]
