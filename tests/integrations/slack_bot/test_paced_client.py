"""Slack's Web API as listeners use it: never more than Slack allows, together with everything else that is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from slack_sdk.errors import SlackApiError

from ai_platform_engineering.integrations.slack_bot.places import SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Body, Deferred, PostMessage
from ai_platform_engineering.integrations.slack_bot.web_api.budget import BURST, LIMITS, Budget
from ai_platform_engineering.integrations.slack_bot.web_api.delivery import Delivery
from ai_platform_engineering.integrations.slack_bot.web_api.paced_client import PacedClient
from ai_platform_engineering.integrations.slack_bot.web_api.web_client import web_client
from tests.integrations.slack_bot.standin import Conversation, Person, Slack, TooMany, VirtualClock, standing_in


@dataclass
class Office:
    slack: Slack
    clock: VirtualClock
    client: PacedClient
    delivery: Delivery
    ada: Person
    channel: Conversation

    async def post_ephemeral(self, text: str) -> None:
        await self.client.chat_postEphemeral(channel=self.channel.id, user=self.ada.id, text=text)


@pytest.fixture
async def office() -> AsyncIterator[Office]:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack, web_client(slack.app.bot_token, slack.api_url) as client:
        budget = Budget(clock)
        ada = slack.person("ada")
        paced, delivery = PacedClient(client, budget, clock), Delivery(client, budget, clock)
        yield Office(slack, clock, paced, delivery, ada, slack.channel("help", ada))


async def test_what_is_too_much_for_a_minute_waits_for_the_next(office: Office) -> None:
    many = LIMITS["chat.postEphemeral"] + 10
    began = office.clock.now()
    async with office.clock.passing():
        await asyncio.gather(*(office.post_ephemeral(str(number)) for number in range(many)))
    assert len(office.slack.calls("chat.postEphemeral")) == many
    assert 60 <= office.clock.now() - began < 70
    assert office.slack.violations == []


async def test_messages_of_listeners_and_of_threads_take_turns_in_a_channel(office: Office) -> None:
    for number in range(BURST):
        await office.client.chat_postMessage(channel=office.channel.id, text=str(number))
    place = ThreadPlace("T1", office.channel.id, "1.0")
    report = await office.delivery.do(place, SlackUser("T1", office.ada.id), PostMessage(1, Body("text")), urgent=True)
    assert isinstance(report, Deferred)


async def test_slack_is_left_alone_for_as_long_as_it_says_by_everybody(office: Office) -> None:
    office.slack.faults.next("chat.postEphemeral", TooMany(20))
    began = office.clock.now()
    async with office.clock.passing():
        await office.post_ephemeral("first")
        assert office.clock.now() - began >= 20
    assert len(office.slack.workspace.messages) == 1
    assert office.slack.violations == []


async def test_what_has_no_limit_here_is_not_held_up_and_other_refusals_are_told(office: Office) -> None:
    with pytest.raises(SlackApiError, match="invalid_arguments"):
        await office.client.views_open(trigger_id="none", view={"type": "modal"})
    with pytest.raises(SlackApiError, match="channel_not_found"):
        await office.client.chat_postEphemeral(channel="C404", user=office.ada.id, text="lost")
