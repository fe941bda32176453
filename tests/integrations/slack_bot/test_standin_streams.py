"""Streams of the stand-in: what goes into them, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Any

import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from tests.integrations.slack_bot.bots import client_of
from tests.integrations.slack_bot.standin import Conversation, Person, Slack, VirtualClock, standing_in


async def refused(call: Awaitable[Any]) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


def text(words: str) -> dict[str, str]:
    return {"type": "markdown_text", "text": words}


@dataclass
class Scene:
    """A person has asked something, at a time that a test can move."""

    slack: Slack
    clock: VirtualClock
    client: AsyncWebClient
    ada: Person
    channel: Conversation
    question: str

    async def start(self, *chunks: dict[str, Any], **other: Any) -> str:
        arguments = {
            "channel": self.channel.id,
            "thread_ts": self.question,
            "recipient_team_id": self.slack.directory.team_id,
            "recipient_user_id": self.ada.id,
            "task_display_mode": "plan",
            **({"chunks": list(chunks)} if chunks else {}),
            **other,
        }
        given = {name: value for name, value in arguments.items() if value is not None}
        answer = await self.client.api_call("chat.startStream", json=given)
        return str(answer["ts"])

    async def append(self, ts: str, *chunks: dict[str, Any]) -> None:
        await self.client.chat_appendStream(channel=self.channel.id, ts=ts, chunks=list(chunks))

    async def stop(self, ts: str, *chunks: dict[str, Any], **other: Any) -> None:
        given = {"chunks": list(chunks)} if chunks else {}
        await self.client.chat_stopStream(channel=self.channel.id, ts=ts, **given, **other)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack:
        ada = slack.person("ada")
        channel = slack.channel("help", ada)
        question = await ada.says(channel, "what is wrong?")
        yield Scene(slack, clock, client_of(slack), ada, channel, question.ts)


async def test_a_stream_is_seen_as_it_grows(scene: Scene) -> None:
    task = {"type": "task_update", "id": "1", "title": "Look", "status": "in_progress"}
    ts = await scene.start({"type": "plan_update", "title": "Plan"}, task, text("I look. "))
    await scene.append(ts, {**task, "status": "complete", "details": "found"}, text("It is the disk."))
    button = {"type": "button", "action_id": "again", "text": {"type": "plain_text", "text": "Again"}}
    await scene.stop(ts, blocks=[{"type": "actions", "elements": [button]}])
    assert scene.ada.reads(scene.channel, scene.question) == (
        "ada:\n  what is wrong?\n\nplatform:\n  Plan\n  ✓ Look\n      found\n  I look. It is the disk.\n  [Again]"
    )
    texts = [
        "".join(message.text for message in moment.transcript.messages[1:])
        for moment in scene.slack.history.of(scene.channel.id, scene.question)
    ]
    assert texts == ["", "I look. ", "I look. It is the disk.", "I look. It is the disk."]
    assert scene.slack.violations == []


async def test_slack_ends_a_stream_after_five_minutes_and_an_update_repairs_it(scene: Scene) -> None:
    ts = await scene.start(text("Half"))
    await scene.clock.advance(299)
    await scene.append(ts, text(" of it"))
    await scene.clock.advance(1)
    assert await refused(scene.append(ts, text("lost"))) == "message_not_in_streaming_state"
    assert await refused(scene.stop(ts)) == "message_not_in_streaming_state"
    assert scene.slack.transcript(scene.channel, scene.question).messages[-1].expired
    await scene.client.chat_update(channel=scene.channel.id, ts=ts, text="Half of it, and the rest")
    assert scene.slack.violations == []
    assert scene.slack.history.taken_back(scene.channel.id, scene.question) == []


async def test_a_message_that_streams_can_only_be_streamed_to(scene: Scene) -> None:
    ts = await scene.start(text("Half"))
    update = scene.client.chat_update(channel=scene.channel.id, ts=ts, text="Whole")
    assert await refused(update) == "streaming_state_conflict"
    assert await refused(scene.client.chat_delete(channel=scene.channel.id, ts=ts)) == "cant_delete_message"
    await scene.stop(ts)
    assert await refused(scene.append(ts, text("more"))) == "message_not_in_streaming_state"
    posted = await scene.client.chat_postMessage(channel=scene.channel.id, text="no stream")
    assert await refused(scene.append(posted["ts"], text("more"))) == "message_not_in_streaming_state"


async def test_chunks_and_text_do_not_mix(scene: Scene) -> None:
    assert await refused(scene.start(text("x"), markdown_text="x")) == "cannot_provide_both_markdown_text_and_chunks"
    ts = await scene.start(text("x"))
    append = scene.client.chat_appendStream(channel=scene.channel.id, ts=ts, markdown_text="y")
    assert await refused(append) == "streaming_mode_mismatch"


@pytest.mark.parametrize(
    ("chunk", "error"),
    [
        (text("x" * 12_001), "msg_too_long"),
        (text(""), "invalid_chunks"),
        ({"type": "nonsense"}, "invalid_chunks"),
        ({"type": "task_update", "id": "1", "title": "x" * 257, "status": "pending"}, "invalid_chunks"),
        ({"type": "task_update", "id": "1", "title": "x", "status": "pending", "details": "x" * 257}, "invalid_chunks"),
        ({"type": "task_update", "id": "1", "title": "x", "status": "done"}, "invalid_chunks"),
        ({"type": "task_update", "id": "1", "status": "pending"}, "invalid_chunks"),
        ({"type": "plan_update", "title": "x" * 257}, "invalid_chunks"),
        ({"type": "plan_update", "title": "x", "colour": "red"}, "invalid_chunks"),
        ({"type": "blocks", "blocks": [{"type": "nonsense"}]}, "invalid_blocks"),
    ],
)
async def test_chunks_are_checked(scene: Scene, chunk: dict[str, Any], error: str) -> None:
    ts = await scene.start(text("x"))
    assert await refused(scene.append(ts, chunk)) == error
    assert [violation.kind for violation in scene.slack.violations] == ["refused"]


async def test_in_a_channel_a_stream_needs_a_recipient(scene: Scene) -> None:
    robot = scene.slack.person("robot", is_bot=True)
    assert await refused(scene.start(text("x"), recipient_user_id=None)) == "missing_recipient_user_id"
    assert await refused(scene.start(text("x"), recipient_team_id=None)) == "missing_recipient_team_id"
    assert await refused(scene.start(text("x"), recipient_user_id=robot.id)) == "user_not_found"
    assert await refused(scene.start(text("x"), thread_ts="1.000001")) == "thread_not_found"
    direct = scene.slack.direct(scene.ada)
    question = await scene.ada.says(direct, "hello")
    no_recipient = {"recipient_team_id": None, "recipient_user_id": None}
    await scene.start(text("x"), channel=direct.id, thread_ts=question.ts, **no_recipient)


async def test_streams_can_be_switched_off(scene: Scene) -> None:
    scene.channel.streaming_error = "channel_type_not_supported"
    assert await refused(scene.start(text("x"))) == "channel_type_not_supported"
    scene.channel.streaming_error = ""
    scene.slack.directory.streaming_error = "unknown_method"
    assert await refused(scene.start(text("x"))) == "unknown_method"
    assert scene.slack.violations == []


async def test_a_person_stops_a_stream(scene: Scene) -> None:
    ts = await scene.start(text("On and on"))
    events = []
    scene.slack.state.tell = events.append
    await scene.ada.stops(scene.slack.transcript(scene.channel, scene.question).messages[-1])
    assert await refused(scene.append(ts, text("and on"))) == "stopped_by_user"
    assert await refused(scene.stop(ts)) == "message_not_in_streaming_state"
    (event,) = events
    assert (event["type"], event["user"]) == ("agent_session_stopped", scene.ada.id)
    assert (event["channel"], event["thread_ts"]) == (scene.channel.id, scene.question)
    assert event["streaming_message_ts"] == [ts]


async def test_calls_about_one_message_come_one_after_another(scene: Scene) -> None:
    ts = await scene.start(text("x"))
    await asyncio.gather(*(scene.append(ts, text(str(number))) for number in range(5)))
    assert {violation.kind for violation in scene.slack.violations} == {"overlap"}


async def test_a_status_is_the_first_sign(scene: Scene) -> None:
    await scene.clock.advance(0.4)
    await scene.client.assistant_threads_setStatus(
        channel_id=scene.channel.id, thread_ts=scene.question, status="is looking"
    )
    await scene.clock.advance(1)
    ts = await scene.start(text("Half"))
    assert "is looking" not in scene.ada.reads(scene.channel, scene.question)
    began = float(scene.question)
    history = scene.slack.history
    assert history.first_sign(scene.channel.id, scene.question) == pytest.approx(began + 0.4, abs=0.01)
    assert history.first_text(scene.channel.id, scene.question) == pytest.approx(began + 1.4, abs=0.01)
    await scene.stop(ts)
    await scene.client.chat_update(channel=scene.channel.id, ts=ts, text="Something else")
    (taken_back,) = history.taken_back(scene.channel.id, scene.question)
    assert (taken_back.before, taken_back.after) == ("Half", "Something else")
