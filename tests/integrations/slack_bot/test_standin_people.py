"""People use what they see, and Slack tells the bot of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncRespond
from slack_sdk.web.async_client import AsyncWebClient

from tests.integrations.slack_bot.bots import bolt_app, client_of, over_http
from tests.integrations.slack_bot.standin import (
    Conversation,
    NotPossibleError,
    NotThereError,
    Person,
    Slack,
    VirtualClock,
    standing_in,
)

Json = dict[str, Any]


def plain(words: str) -> Json:
    return {"type": "plain_text", "text": words}


def button(label: str, action_id: str, **more: Any) -> Json:
    return {"type": "button", "action_id": action_id, "text": plain(label), **more}


def actions(*elements: Json) -> Json:
    return {"type": "actions", "elements": list(elements)}


def field(block_id: str, label: str, element: Json, **more: Any) -> Json:
    return {"type": "input", "block_id": block_id, "label": plain(label), "element": element, **more}


def option(value: str) -> Json:
    return {"text": plain(value.capitalize()), "value": value}


NAME = field("name", "Name", {"type": "plain_text_input", "action_id": "text", "min_length": 2})
COLOUR = field(
    "colour",
    "Colour",
    {
        "type": "static_select",
        "action_id": "choice",
        "options": [option("red"), option("blue")],
        "initial_option": option("red"),
    },
)
TAGS = field(
    "tags", "Tags", {"type": "checkboxes", "action_id": "several", "options": [option("a"), option("b")]}, optional=True
)
SIZE = field(
    "size", "Size", {"type": "number_input", "action_id": "number", "is_decimal_allowed": False}, optional=True
)
FORM: Json = {
    "type": "modal",
    "callback_id": "form",
    "private_metadata": "task 1",
    "title": plain("A form"),
    "submit": plain("Send"),
    "blocks": [NAME, COLOUR, TAGS, SIZE],
}


@dataclass
class Scene:
    slack: Slack
    app: AsyncApp
    client: AsyncWebClient
    ada: Person
    channel: Conversation
    bodies: list[Json]

    async def post(self, *blocks: Json) -> Any:
        await self.client.chat_postMessage(channel=self.channel.id, text="x", blocks=list(blocks))
        return self.slack.transcript(self.channel).messages[-1]


@pytest.fixture
async def scene(slack: Slack) -> AsyncIterator[Scene]:
    app = bolt_app(slack)
    bodies: list[Json] = []

    @app.middleware
    async def keep(body: Json, next: Any) -> None:  # noqa: A002
        bodies.append(body)
        await next()

    @app.action("go")
    async def go(ack: AsyncAck) -> None:
        await ack()

    @app.action("open")
    async def open_form(ack: AsyncAck, body: Json, client: AsyncWebClient) -> None:
        await ack()
        await client.views_open(trigger_id=body["trigger_id"], view=FORM)

    slack.echoes = False
    ada = slack.person("ada")
    async with over_http(slack, app):
        yield Scene(slack, app, client_of(slack), ada, slack.channel("help", ada), bodies)


async def test_a_button_is_found_by_what_is_seen(scene: Scene) -> None:
    message = await scene.post(actions(button("Go on", "go", value="7"), button("Stop", "stop")))
    for name in ("Go on", "go", "7"):
        assert not (await scene.ada.presses(message, name)).problem
    body = scene.bodies[-1]
    assert body["type"] == "block_actions"
    assert (body["actions"][0]["action_id"], body["actions"][0]["value"]) == ("go", "7")
    assert body["container"]["message_ts"] == body["message"]["ts"] == message.ts
    assert body["user"]["id"] == scene.ada.id
    with pytest.raises(NotThereError, match="'Go on', 'Stop'"):
        await scene.ada.presses(message, "Explode")


async def test_what_is_gone_or_for_others_cannot_be_pressed(scene: Scene) -> None:
    message = await scene.post(actions(button("Go on", "go")))
    await scene.client.chat_update(channel=scene.channel.id, ts=message.ts, text="done", blocks=[{"type": "divider"}])
    with pytest.raises(NotThereError):
        await scene.ada.presses(message, "Go on")
    await scene.ada.deletes(message)
    with pytest.raises(NotThereError):
        await scene.ada.presses(message, "Go on")
    bob = scene.slack.person("bob")
    scene.channel.members.add(bob.id)
    blocks = [actions(button("Go on", "go"))]
    await scene.client.chat_postEphemeral(channel=scene.channel.id, user=scene.ada.id, text="x", blocks=blocks)
    post_ephemeral = scene.slack.transcript(scene.channel).messages[-1]
    assert not (await scene.ada.presses(post_ephemeral, "Go on")).problem
    assert "message" not in scene.bodies[-1]
    with pytest.raises(NotThereError):
        await bob.presses(post_ephemeral, "Go on")


async def test_thumbs(scene: Scene) -> None:
    thumbs = {
        "type": "feedback_buttons",
        "action_id": "go",
        "positive_button": {"text": plain("👍"), "value": "good"},
        "negative_button": {"text": plain("👎"), "value": "bad"},
    }
    message = await scene.post({"type": "context_actions", "elements": [thumbs]})
    await scene.ada.presses(message, "👎")
    action = scene.bodies[-1]["actions"][0]
    assert (action["type"], action["value"]) == ("feedback_buttons", "bad")


async def test_fields_of_a_message_go_along_with_its_buttons(scene: Scene) -> None:
    message = await scene.post(NAME, COLOUR, actions(button("Go on", "go")))
    await scene.ada.fills_in(message, {"Name": "demo", "colour": "Blue"})
    assert scene.bodies == []
    await scene.ada.presses(message, "Go on")
    values = scene.bodies[-1]["state"]["values"]
    assert values["name"]["text"] == {"type": "plain_text_input", "value": "demo"}
    assert values["colour"]["choice"]["selected_option"] == option("blue")


async def test_a_choice_outside_of_a_form_is_told_at_once(scene: Scene) -> None:
    choice = {"type": "radio_buttons", "action_id": "go", "options": [option("red"), option("blue")]}
    message = await scene.post({"type": "section", "text": plain("Which?"), "accessory": choice})
    await scene.ada.fills_in(message, {"Which?": "blue"})
    assert scene.bodies[-1]["actions"][0]["selected_option"] == option("blue")


async def test_a_modal_is_filled_in_and_submitted(scene: Scene) -> None:
    @scene.app.view("form")
    async def take(ack: AsyncAck) -> None:
        await ack()

    message = await scene.post(actions(button("Open", "open")))
    await scene.ada.presses(message, "Open")
    assert scene.ada.modal.title == "A form"
    with pytest.raises(NotPossibleError, match="required"):
        await scene.ada.submits()
    await scene.ada.fills_in(scene.ada.modal, {"Name": "d", "Tags": ["A", "b"], "Size": "3"})
    with pytest.raises(NotPossibleError, match="2"):
        await scene.ada.submits()
    await scene.ada.fills_in(scene.ada.modal, {"Name": "demo"})
    await scene.ada.submits()
    assert not scene.ada.has_modal
    view = scene.bodies[-1]["view"]
    assert (view["callback_id"], view["private_metadata"]) == ("form", "task 1")
    assert view["state"]["values"] == {
        "name": {"text": {"type": "plain_text_input", "value": "demo"}},
        "colour": {"choice": {"type": "static_select", "selected_option": option("red")}},
        "tags": {"several": {"type": "checkboxes", "selected_options": [option("a"), option("b")]}},
        "size": {"number": {"type": "number_input", "value": "3"}},
    }
    assert scene.slack.violations == []


async def test_what_the_bot_answers_to_a_form_is_seen(scene: Scene) -> None:
    answers: list[Json] = [
        {"response_action": "errors", "errors": {"name": "is taken"}},
        {"response_action": "update", "view": {**FORM, "title": plain("Once more")}},
        {"response_action": "push", "view": {**FORM, "title": plain("And more")}},
        {"response_action": "clear"},
    ]

    @scene.app.view("form")
    async def take(ack: AsyncAck) -> None:
        await ack(**answers.pop(0))

    message = await scene.post(actions(button("Open", "open")))
    await scene.ada.presses(message, "Open")
    seen = []
    while scene.ada.has_modal:
        await scene.ada.fills_in(scene.ada.modal, {"Name": "demo"})
        await scene.ada.submits()
        if scene.ada.has_modal:
            seen.append((scene.ada.modal.title, dict(scene.ada.modal.errors)))
    assert seen == [("A form", {"name": "is taken"}), ("Once more", {}), ("And more", {})]
    assert scene.slack.violations == []


async def test_errors_for_what_is_no_field_are_no_answer(scene: Scene) -> None:
    @scene.app.view("form")
    async def take(ack: AsyncAck) -> None:
        await ack(response_action="errors", errors={"nothing": "is wrong"})

    message = await scene.post(actions(button("Open", "open")))
    await scene.ada.presses(message, "Open")
    await scene.ada.fills_in(scene.ada.modal, {"Name": "demo"})
    await scene.ada.submits()
    assert [violation.kind for violation in scene.slack.violations] == ["refused"]


async def test_a_response_url_answers_and_replaces(scene: Scene) -> None:
    @scene.app.action("respond")
    async def respond_to(ack: AsyncAck, respond: AsyncRespond) -> None:
        await ack()
        await respond(text="for you", replace_original=False)
        await respond(text="replaced", replace_original=True)

    message = await scene.post(actions(button("Respond", "respond")))
    await scene.ada.presses(message, "Respond")
    assert scene.ada.reads(scene.channel) == (
        "platform:\n  replaced\n  (edited)\n\nplatform (only ada sees it):\n  for you"
    )
    assert scene.slack.violations == []


async def test_a_command_that_the_app_does_not_have_is_slacks_own_affair(scene: Scene) -> None:
    with pytest.raises(NotPossibleError):
        await scene.ada.commands(scene.channel, "/nonsense")
    assert scene.bodies == []


async def test_an_assistant_thread_begins_in_direct_messages(scene: Scene) -> None:
    scene.slack.app.events |= {"assistant_thread_started"}
    heard: list[Json] = []

    @scene.app.event("assistant_thread_started")
    async def start(event: Json) -> None:
        heard.append(event)

    @scene.app.event("message")
    async def hear(event: Json) -> None:
        heard.append(event)

    thread = await scene.ada.starts_assistant_thread()
    await scene.ada.says(thread.channel, "hello", thread.ts)
    await scene.slack.deliveries.finish()
    started, message = heard
    assert started["assistant_thread"]["thread_ts"] == message["thread_ts"] == thread.ts
    assert message["channel_type"] == "im"


async def test_the_bot_receives_an_event_when_its_messages_are_opened(scene: Scene) -> None:
    heard: list[Json] = []

    @scene.app.event("app_home_opened")
    async def hear(event: Json) -> None:
        heard.append(event)

    direct = await scene.ada.opens_direct_messages()
    await scene.slack.deliveries.finish()
    assert [(event["user"], event["channel"], event["tab"]) for event in heard] == [
        (scene.ada.id, direct.id, "messages")
    ]


async def test_another_bot_is_told_apart_from_people(scene: Scene) -> None:
    heard: list[Json] = []

    @scene.app.event("message")
    async def hear(event: Json) -> None:
        heard.append(event)

    robot = scene.slack.person("robot", is_bot=True)
    scene.channel.members.add(robot.id)
    await robot.says(scene.channel, "beep")
    await scene.slack.deliveries.finish()
    assert heard[0]["bot_id"] == robot.user.bot_id


async def test_time_passes_when_everything_is_idle() -> None:
    clock = VirtualClock()
    async with standing_in(clock=clock) as slack:
        client = client_of(slack)
        channel = slack.channel("help")

        async def talk() -> None:
            for number in range(10):
                await client.chat_postMessage(channel=channel.id, text=str(number))
                await clock.sleep(30)

        began = clock.now()
        async with clock.passing():
            await talk()
        assert clock.now() == began + 300
        times = [moment.time - began for moment in slack.history.of(channel.id, "")]
        assert times == pytest.approx([30 * number for number in range(10)])


async def test_what_was_waited_for_in_vain_is_explained(slack: Slack) -> None:
    ada = slack.person("ada")
    channel = slack.channel("help", ada)
    await ada.says(channel, "is anybody there?")
    with pytest.raises(AssertionError, match="is anybody there"):
        await slack.until(lambda: False, within=0.05)
