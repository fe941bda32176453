"""Which messages are answered, as what, and how often: through Bolt, with requests that are signed as Slack's are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from time import process_time
from typing import Any

import pytest

from ai_platform_engineering.integrations.slack_bot.channels import load_channels
from ai_platform_engineering.integrations.slack_bot.listeners.incoming import CUT, MAX_CHARACTERS
from ai_platform_engineering.integrations.slack_bot.listeners.messages import FILES
from ai_platform_engineering.integrations.slack_bot.listeners.texts import NOT_HERE
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from tests.integrations.slack_bot.listening_bench import ANNA, Bench, bench, direct, mention, message

CHANNELS = """
defaults: {enabled: false}
channels:
  C1: {name: help, enabled: true, prompt: Answer in German.}
  C2: {name: everything, answer: all}
  C3: {name: closed, enabled: false}
"""


@pytest.fixture
async def listeners() -> AsyncIterator[Bench]:
    async with bench() as made:
        yield made


@pytest.fixture
async def chosen(tmp_path: Path) -> AsyncIterator[Bench]:
    """Where a file says which channels."""
    path = tmp_path / "channels.yaml"
    path.write_text(CHANNELS, encoding="utf-8")
    async with bench(load_channels(path)) as made:
        yield made


async def test_a_mention_is_answered_in_a_thread_of_its_own(listeners: Bench) -> None:
    assert (await listeners.event(mention())).status_code == 200
    assert listeners.bot.taken == [Incoming(ThreadPlace("T1", "C1", "1.000100"), "1.000100", "who is on call?", ANNA)]


async def test_a_mention_in_a_thread_is_answered_there(listeners: Bench) -> None:
    await listeners.event(mention(ts="2.0", thread_ts="1.0"))
    assert [incoming.place.thread_ts for incoming in listeners.bot.taken] == ["1.0"]


async def test_a_skill_is_asked_for_by_name_in_a_channel_and_directly(listeners: Bench) -> None:
    await listeners.event(mention("<@UBOT> /incident-triage payments-api"))
    # Slack takes a slash at the beginning for a command of its own, so people write a space before it.
    await listeners.event(direct(" /incident-triage payments-api", ts="2.0"))
    assert [incoming.text for incoming in listeners.bot.taken] == ["/incident-triage payments-api"] * 2


async def test_the_same_message_told_as_mention_and_as_message_is_one(listeners: Bench) -> None:
    listeners.bot.seconds = 0.05
    text = "<@UBOT> who is on call?"
    answers = await asyncio.gather(
        listeners.event(mention(text)), listeners.event(message(text)), listeners.event(mention(text), event_id="Ev1")
    )
    assert [answer.status_code for answer in answers] == [200] * 3
    assert len(listeners.bot.taken) == 1


async def test_direct_messages_need_no_mention(listeners: Bench) -> None:
    await listeners.event(direct("hello"))
    await listeners.event(direct("and more", ts="2.0", thread_ts="1.000100"))
    assert [(taken.text, taken.place.thread_ts) for taken in listeners.bot.taken] == [
        ("hello", "1.000100"),
        ("and more", "1.000100"),
    ]


async def test_in_a_thread_that_the_bot_is_part_of_nobody_has_to_mention_it(listeners: Bench) -> None:
    await listeners.event(message("not for the bot", ts="0.5"))
    await listeners.event(mention(ts="1.0"))
    await listeners.event(message("and tomorrow?", ts="2.0", thread_ts="1.0", user="UBEN"))
    await listeners.event(message("among ourselves", ts="3.0", thread_ts="0.5"))
    assert [(taken.text, taken.person.id, taken.quiet) for taken in listeners.bot.taken] == [
        ("who is on call?", "UANNA", False),
        ("and tomorrow?", "UBEN", False),
    ]


@pytest.mark.parametrize(
    "event",
    [
        message("<@UBOT> edited", subtype="message_changed"),
        message("<@UBOT> gone", subtype="message_deleted"),
        message("<@UBOT> has joined the channel", subtype="channel_join"),
        message("<@UBOT> my own", user="UBOT"),
        message("<@UBOT> my own", user=None, bot_id="BBOT", subtype="bot_message"),
        direct("my own", user="UBOT", bot_id="BBOT"),
        direct("a reminder", user="USLACKBOT"),
        message("talk of a bot", bot_id="BOTHER", subtype="bot_message", user=None),
        direct("talk of a bot", bot_id="BOTHER"),
        message("for another person: <@UBEN>"),
        {"type": "channel_rename", "channel": {"id": "C1"}},
    ],
)
async def test_what_is_not_for_the_bot_is_taken_note_of_and_left(listeners: Bench, event: dict[str, Any]) -> None:
    assert (await listeners.event(event)).status_code == 200
    await listeners.quiet()
    assert listeners.bot.taken == []
    assert listeners.slack.calls == []


async def test_bots_that_mention_it_are_answered_as_bots(listeners: Bench) -> None:
    alert = message("<@UBOT> disk is full", user=None, bot_id="BOTHER", subtype="bot_message")
    await listeners.event(alert)
    assert [(taken.text, taken.person) for taken in listeners.bot.taken] == [
        ("disk is full", SlackUser("T1", "BOTHER", is_bot=True))
    ]


async def test_people_of_other_workspaces_are_of_theirs(listeners: Bench) -> None:
    await listeners.event(mention(user="UEVE", team="T1", user_team="T9"))
    (taken,) = listeners.bot.taken
    assert (taken.person, taken.place.team) == (SlackUser("T9", "UEVE"), "T1")


async def test_files_and_broadcasts_are_messages(listeners: Bench) -> None:
    await listeners.event(mention("<@UBOT> look at this", subtype="file_share", files=[{"id": "F1"}]))
    await listeners.event(message("me too", subtype="thread_broadcast", ts="2.0", thread_ts="1.000100"))
    assert [taken.text for taken in listeners.bot.taken] == ["look at this", "me too"]


@pytest.mark.parametrize(
    ("event", "part"),
    [(mention("<@UBOT>  "), "/platform agents"), (mention("<@UBOT>", files=[{"id": "F1"}]), FILES)],
)
async def test_nothing_to_answer_is_told_to_the_person_alone_and_once(
    listeners: Bench, event: dict[str, Any], part: str
) -> None:
    for _ in range(2):
        await listeners.event(event)
        await listeners.event({**event, "type": "message", "channel_type": "channel"})
    await listeners.quiet()
    (notice,) = listeners.slack.of("chat.postEphemeral")
    assert (notice["channel"], notice["user"]) == ("C1", "UANNA")
    assert part in notice["text"]
    assert listeners.bot.taken == []


async def test_a_channel_that_did_not_opt_in_is_told_so_when_it_asks(chosen: Bench) -> None:
    for channel in ("C3", "C4"):
        await chosen.event(mention(channel=channel))
        await chosen.event(message(channel=channel, ts="2.0"))
        await chosen.event(message("<@UBOT> alert", channel=channel, bot_id="BOTHER", ts="3.0"))
    await chosen.quiet()
    notice = chosen.slack.of("chat.postEphemeral")
    assert [(words["channel"], words["text"]) for words in notice] == [("C3", NOT_HERE), ("C4", NOT_HERE)]
    assert chosen.bot.taken == []


async def test_a_channel_has_instructions_of_its_own(chosen: Bench) -> None:
    await chosen.event(mention())
    await chosen.event(message())
    assert [taken.instructions for taken in chosen.bot.taken] == ["Answer in German."]


async def test_where_everything_is_answered_it_is_done_quietly(chosen: Bench) -> None:
    await chosen.event(message("does anybody know?", channel="C2", ts="1.0"))
    await chosen.event(message("I do not", channel="C2", ts="1.1", thread_ts="1.0"))
    await chosen.event(message("<@UBOT> do you?", channel="C2", ts="1.2", thread_ts="1.0"))
    await chosen.event(message("and now?", channel="C2", ts="1.3", thread_ts="1.0"))
    await chosen.event(message("an alert", channel="C2", ts="2.0", bot_id="BOTHER"))
    await chosen.event(message("elsewhere", channel="C2", ts="3.1", thread_ts="3.0"))
    assert [(taken.text, taken.quiet) for taken in chosen.bot.taken] == [
        ("does anybody know?", True),
        ("I do not", True),
        ("do you?", False),
        ("and now?", False),
    ]


async def test_people_are_called_by_their_names(listeners: Bench) -> None:
    listeners.slack.people["UBEN"] = "Ben"
    for ts in ("1.0", "2.0"):
        await listeners.event(mention("<@UBOT> assign it to <@UBEN>, not to <@UNOBODY>", ts=ts))
    assert [taken.text for taken in listeners.bot.taken] == ["assign it to @Ben, not to @UNOBODY"] * 2
    assert [words["user"] for words in listeners.slack.of("users.info")].count("UBEN") == 1


async def test_what_the_bot_has_to_say_about_a_message_is_said_to_its_author(listeners: Bench) -> None:
    listeners.bot.says = "Only <@UBEN> may answer this."
    await listeners.event(mention(ts="2.0", thread_ts="1.0"))
    await listeners.quiet()
    (notice,) = listeners.slack.of("chat.postEphemeral")
    assert (notice["user"], notice["thread_ts"], notice["text"]) == ("UANNA", "1.0", "Only <@UBEN> may answer this.")


async def test_a_very_long_message_is_cut_and_says_so(listeners: Bench) -> None:
    await listeners.event(direct("x" * (MAX_CHARACTERS + 1)))
    (taken,) = listeners.bot.taken
    assert taken.text == "x" * MAX_CHARACTERS + CUT


@pytest.mark.serial
async def test_slack_has_its_answer_in_time_when_hundreds_ask_at_once(listeners: Bench) -> None:
    pause = listeners.bot.seconds = 0.5

    async def ask(number: int) -> None:
        answer = await listeners.event(mention(f"<@UBOT> question {number}", ts=f"{number}.0"))
        assert answer.status_code == 200

    began = process_time()
    # One after the other they would take 150 seconds.
    async with asyncio.timeout(60):
        await asyncio.gather(*map(ask, range(300)))
    assert process_time() - began < 3 - pause, "on a machine with nothing else to do"
    assert len(listeners.bot.taken) == 300


async def test_what_could_not_be_kept_is_not_acknowledged_and_comes_again(
    listeners: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    listeners.bot.error = OSError("disk full of secret questions")
    assert (await listeners.event(mention("<@UBOT> secret question"), event_id="Ev1")).status_code == 500
    again = {"x-slack-retry-num": "1", "x-slack-retry-reason": "http_error"}
    assert (await listeners.event(mention("<@UBOT> secret question"), event_id="Ev1", **again)).status_code == 500
    listeners.bot.error = None
    assert (await listeners.event(mention("<@UBOT> secret question"), event_id="Ev1", **again)).status_code == 200
    await listeners.quiet()
    assert len(listeners.bot.taken) == 1
    (notice,) = listeners.slack.of("chat.postEphemeral")
    assert "Try again" in notice["text"]
    assert "secret" not in caplog.text
    assert "OSError" in caplog.text


@pytest.mark.parametrize("secret", ["another-secret", ""])
async def test_what_slack_did_not_sign_is_refused(listeners: Bench, secret: str) -> None:
    body = '{"type": "event_callback", "event": {"type": "app_mention"}}'
    answer = await listeners.post(body, "application/json", {}, secret=secret or "other")
    assert answer.status_code == 401
    assert listeners.bot.taken == []


async def test_slack_is_told_that_the_address_is_right(listeners: Bench) -> None:
    body = '{"type": "url_verification", "challenge": "abc"}'
    answer = await listeners.post(body, "application/json", {})
    assert (answer.status_code, answer.json()) == (200, {"challenge": "abc"})


@pytest.mark.parametrize("body", ["", "{", "[]", "nonsense=%ff", "payload=%7B"])
async def test_nonsense_is_refused(listeners: Bench, body: str) -> None:
    assert 400 <= (await listeners.post(body, "application/json", {})).status_code < 500
