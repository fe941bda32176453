"""Conversations in Slack, over HTTP: everywhere people can talk to the bot, and everything they can press."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from tests.integrations.slack_bot.held_tools import HeldTools
from tests.integrations.slack_bot.installation import BAD, GOOD, Installation, Service, Thread, installation
from tests.integrations.slack_bot.standin import Person
from tests.integrations.slack_bot.standin.http_route import HttpRoute

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def acme(supervisor: Service, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installation(tmp_path_factory.mktemp("bot"), supervisor.url, socket_mode=False) as acme:
        yield acme
        acme.check(also={"the supervisor": supervisor.output}, addresses=(supervisor.url.removeprefix("http://"),))


async def feedback_of(supervisor: Service, person: Person) -> list[dict[str, Any]]:
    async with httpx.AsyncClient() as http:
        listed = (await http.get(f"{supervisor.url}/feedback")).json()["feedback"]
    return [one for one in listed if one["user"].endswith(f"/{person.id}")]


async def test_a_follow_up_in_the_thread_needs_no_mention_and_means_what_was_talked_about(acme: Installation) -> None:
    thread = await acme.asks(acme.person(), "show the payments-api app")
    await thread.answered()
    await thread.says("is there an incident for it?")
    await thread.answered(2)
    assert "Calling Agent Pagerduty..." in thread.text
    assert "payments-api" in thread.answers[-1].text
    thread.check()


async def test_what_others_say_elsewhere_is_not_answered(acme: Installation) -> None:
    ada = acme.person()
    channel = acme.channel(ada)
    said = await ada.says(channel, "show argocd version")
    await ada.says(channel, "anybody?", said.ts)
    await acme.slack.deliveries.finish()
    assert [message.author for message in ada.sees(channel, said.ts).messages] == [ada.id, ada.id]


async def test_a_direct_message_is_answered_in_its_thread(acme: Installation) -> None:
    ada = acme.person()
    channel = acme.slack.direct(ada)
    asked = await ada.says(channel, "show argocd version")
    thread = Thread(acme.slack, ada, channel, asked.ts)
    answer = await thread.answered()
    assert "v3.1.8" in answer.text
    thread.check()


async def test_who_opens_its_messages_finds_something_to_begin_with(acme: Installation, supervisor: Service) -> None:
    ada = acme.person()
    channel = await ada.opens_direct_messages()
    await acme.slack.until(lambda: ada.sees(channel).prompts)
    asked = await ada.says(channel, ada.sees(channel).prompts[0])
    thread = Thread(acme.slack, ada, channel, asked.ts)
    await thread.answered()
    thread.check()


async def test_in_the_assistant_of_an_older_app_it_greets(acme: Installation) -> None:
    ada = acme.person()
    events = acme.slack.app.events
    acme.slack.app.events |= {"assistant_thread_started"}
    try:
        began = await ada.starts_assistant_thread()
    finally:
        acme.slack.app.events = events
    thread = Thread(acme.slack, ada, acme.slack.direct(ada), began.ts)
    await thread.until(lambda: "What can I do for you?" in thread.text)
    await thread.until(lambda: ada.sees(thread.channel, thread.ts).prompts)
    await thread.says("show argocd version")
    assert "v3.1.8" in (await thread.answered()).text
    thread.check()


async def test_the_command_tells_what_there_is(acme: Installation) -> None:
    ada = acme.person()
    channel = acme.channel(ada)
    await ada.commands(channel, "/platform", "help")
    assert "`/platform agents` lists my agents" in ada.reads(channel)
    await ada.commands(channel, "/platform", "agents")
    await acme.slack.until(lambda: "*PagerDuty*" in ada.reads(channel))
    assert "*incident-triage*" not in ada.reads(channel), "a skill is not an agent"
    await ada.commands(channel, "/platform", "skills")
    await acme.slack.until(lambda: "*incident-triage*" in ada.reads(channel))
    await ada.commands(channel, "/platform", "workflows")
    await acme.slack.until(lambda: "create_github_repo" in ada.reads(channel))
    await ada.commands(channel, "/platform", "cancel")
    await acme.slack.until(lambda: "You have no running request in this channel." in ada.reads(channel))
    assert all(message.ephemeral_for == ada.id for message in ada.sees(channel).messages)


async def test_the_command_asks(acme: Installation) -> None:
    ada = acme.person()
    channel = acme.channel(ada)
    await ada.commands(channel, "/platform", "show argocd version")
    await acme.slack.until(lambda: ada.sees(channel).messages)
    (asked,) = ada.sees(channel).messages
    assert f"<@{ada.id}> asks:" in asked.text
    thread = Thread(acme.slack, ada, channel, asked.ts)
    assert "v3.1.8" in (await thread.answered()).text
    await thread.says("again")
    await thread.answered(2)


@pytest.mark.parametrize("way", ["mention", "direct message", "command"])
async def test_a_skill_is_used_by_its_name(acme: Installation, way: str) -> None:
    ada = acme.person()
    match way:
        case "mention":
            thread = await acme.asks(ada, "/incident-triage payments-api")
        case "direct message":
            channel = acme.slack.direct(ada)
            asked = await ada.says(channel, " /incident-triage payments-api")
            thread = Thread(acme.slack, ada, channel, asked.ts)
        case _:
            channel = acme.channel(ada)
            await ada.commands(channel, "/platform", "/incident-triage payments-api")
            await acme.slack.until(lambda: ada.sees(channel).messages)
            thread = Thread(acme.slack, ada, channel, ada.sees(channel).messages[0].ts)
    answer = await thread.answered()
    assert "payments-api" in answer.text
    cards = {card.title: card.status for message in thread.messages for card in message.cards}
    assert cards["Skill incident-triage"] == "complete"
    thread.check()


async def test_the_command_cancels(acme: Installation, knowledge: HeldTools) -> None:
    async with knowledge.holding("search"):
        thread = await acme.asks(acme.person(), "how do I run ArgoCD remotely?")
        await thread.until(lambda: knowledge.called["search"])
        await thread.person.commands(thread.channel, "/platform", "cancel")
        await thread.until(lambda: "Stopping it." in thread.person.reads(thread.channel))
        await thread.until(lambda: f"Stopped by <@{thread.person.id}>" in thread.text and thread.is_at_rest())
    assert thread.answers == []
    thread.check()


async def test_the_stop_button_cancels(acme: Installation, knowledge: HeldTools) -> None:
    async with knowledge.holding("search"):
        thread = await acme.asks(acme.person(), "how do I run ArgoCD remotely?")
        await thread.until(lambda: thread.has_button("Stop"))
        await thread.person.presses(thread.with_button("Stop"), "Stop")
        await thread.until(lambda: f"Stopped by <@{thread.person.id}>" in thread.text and thread.is_at_rest())
    assert thread.answers == []
    thread.check()


async def test_slacks_own_stop_button_cancels(acme: Installation, knowledge: HeldTools) -> None:
    async with knowledge.holding("search"):
        ada, bob = acme.person("ada"), acme.person("bob")
        thread = await acme.asks(ada, "how do I run ArgoCD remotely?", acme.channel(ada, bob))
        await thread.until(lambda: knowledge.called["search"] and "search" in thread.text)
        await bob.stops(thread.messages[0])
        await thread.until(lambda: "Stopped" in thread.text and thread.is_at_rest())
    assert f"Stopped by <@{bob.id}>" in thread.text, "the person who pressed it, not the requester"
    assert thread.answers == []
    thread.check()


async def test_thumbs_are_kept_with_the_person_and_the_answer(acme: Installation, supervisor: Service) -> None:
    ada = acme.person()
    thread = await acme.asks(ada, "show argocd version")
    await ada.presses(await thread.answered(), GOOD)
    await thread.until(lambda: any("Thank you, noted." in one for one in thread.ephemeral_messages))
    (kept,) = await feedback_of(supervisor, ada)
    assert (kept["rating"], kept["surface"]) == ("up", "slack")
    assert kept["trace_id"]
    assert kept["message_id"]


async def test_a_thumb_down_has_a_reason_and_brings_another_answer(acme: Installation, supervisor: Service) -> None:
    ada = acme.person()
    thread = await acme.asks(ada, "show argocd version")
    await ada.presses(await thread.answered(), BAD)
    await thread.until(lambda: ada.has_modal)
    values = {"What is the matter?": "Something is missing", "In your own words": "The colour", "And now?": True}
    await ada.fills_in(ada.modal, values)
    await ada.submits()
    await thread.answered(2)
    (kept,) = await feedback_of(supervisor, ada)
    assert (kept["rating"], kept["reason"]) == ("down", "Something is missing: The colour")
    thread.check()


async def test_what_comes_twice_is_answered_once(acme: Installation) -> None:
    acme.slack.deliveries.copies = 2
    try:
        thread = await acme.asks(acme.person(), "show argocd version")
        await thread.answered()
        await acme.slack.deliveries.finish()
        follow_up = await thread.says("again")
        await thread.answered(2)
    finally:
        acme.slack.deliveries.copies = 1
    assert len(thread.answers) == 2
    assert all(message.ts < follow_up.ts for message in thread.messages[:1])
    thread.check()


async def test_two_questions_at_once_are_answered_one_after_the_other(acme: Installation) -> None:
    thread = await acme.asks(acme.person(), "who is on call?")
    await thread.says("show argocd version")
    await thread.answered(2)
    texts = [answer.text for answer in thread.answers]
    assert ["Priya Nair" in text for text in texts] == [True, False]
    assert ["v3.1.8" in text for text in texts] == [False, True]
    thread.check()


async def test_only_slack_is_listened_to(acme: Installation) -> None:
    route = acme.slack.deliveries.route
    assert isinstance(route, HttpRoute)
    ada = acme.person()
    channel = acme.channel(ada)
    event = f'{{"type": "event_callback", "event": {{"type": "app_mention", "channel": "{channel.id}", "ts": "1.1"}}}}'
    for wrong in ({"secret": "another-apps"}, {"signature": "v0=0"}, {"age": 400.0}):
        assert (await route.post(event, "application/json", **wrong)).status_code == 401
    async with httpx.AsyncClient() as http:
        assert (await http.post(f"{acme.bot.url}/slack/events", content=event)).status_code == 401
    assert (await route.verify_url("prove it")).text.count("prove it") == 1


async def test_acknowledgements_come_while_many_runs_are_open(acme: Installation, knowledge: HeldTools) -> None:
    async with knowledge.holding("search"):
        threads = [await acme.asks(acme.person(), "how do I run ArgoCD remotely?") for _ in range(5)]
        await asyncio.gather(*(thread.until(lambda: knowledge.called["search"] == 5) for thread in threads))
        ada = acme.person()
        began = time.monotonic()
        await ada.commands(acme.channel(ada), "/platform", "help")
        assert time.monotonic() - began < 15
    for thread in threads:
        await thread.answered()
