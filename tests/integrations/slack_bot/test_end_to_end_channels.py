"""Channels with rules of their own: who is answered, how, and who may decide."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from ai_platform_engineering.final_results import NOTHING_TO_SAY
from tests.integrations.slack_bot.installation import Installation, Service, Thread, installation, is_done
from tests.integrations.slack_bot.played_model import Call, PlayedModel
from tests.integrations.slack_bot.standin import Conversation, Person, Slack

pytestmark = pytest.mark.asyncio(loop_scope="package")


@dataclass
class Rooms:
    """People and channels, as the file of the team knows them."""

    folder: Path
    installation: Installation = field(init=False)
    ada: Person = field(init=False)
    bob: Person = field(init=False)
    german: Conversation = field(init=False)
    everything: Conversation = field(init=False)
    guarded: Conversation = field(init=False)
    closed: Conversation = field(init=False)

    def furnish(self, slack: Slack) -> Mapping[str, str]:
        self.ada, self.bob = slack.person("ada"), slack.person("bob")
        self.german, self.everything, self.guarded, self.closed = (
            slack.channel(name, self.ada, self.bob) for name in ("german", "everything", "guarded", "closed")
        )
        file = self.folder / "channels.yaml"
        file.write_text(
            "defaults: {enabled: false}\n"
            "channels:\n"
            f"  {self.german.id}: {{prompt: Answer in German.}}\n"
            f"  {self.everything.id}: {{answer: all}}\n"
            f"  {self.guarded.id}: {{approvers: [{self.bob.id}]}}\n"
        )
        return {"SLACK_CHANNELS_FILE": str(file)}


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def rooms(thinker: Service, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rooms]:
    folder = tmp_path_factory.mktemp("bot")
    rooms = Rooms(folder)
    async with installation(folder, thinker.url, prepare=rooms.furnish) as rooms.installation:
        yield rooms
        rooms.installation.check(
            also={"the supervisor": thinker.output}, addresses=(thinker.url.removeprefix("http://"),)
        )


async def test_a_channel_has_instructions_for_the_supervisor(rooms: Rooms, model: PlayedModel) -> None:
    question = "What is a pod?"
    model.parts[question] = [["Ein Pod ist ein Pod.\n"]]
    thread = await rooms.installation.asks(rooms.ada, question, rooms.german)
    await thread.answered()
    (request,) = model.asked(question)
    assert "Answer in German." in str(request["messages"])
    assert model.heard(question) == [question], "nothing is added to what people say"


async def test_in_a_disabled_channel_only_the_requester_gets_a_reply(rooms: Rooms) -> None:
    thread = await rooms.installation.asks(rooms.ada, "What is a pod?", rooms.closed)
    await thread.until(lambda: thread.person.sees(rooms.closed).messages[1:])
    assert [message.ephemeral_for for message in rooms.ada.sees(rooms.closed).messages] == ["", rooms.ada.id]
    assert len(rooms.bob.sees(rooms.closed).messages) == 1


async def test_it_reads_everything_and_is_silent_when_unsure(rooms: Rooms, model: PlayedModel) -> None:
    model.parts["Lunch?"] = [[NOTHING_TO_SAY]]
    model.parts["Is the cluster up?"] = [["It is up.\n"]]
    lunch = await rooms.ada.says(rooms.everything, "Lunch?")
    asked = await rooms.ada.says(rooms.everything, "Is the cluster up?")
    thread = Thread(rooms.installation.slack, rooms.ada, rooms.everything, asked.ts)
    await thread.answered()
    assert "It is up." in thread.said
    await thread.until(lambda: is_done(rooms.folder, lunch))
    assert model.asked("Lunch?")
    history = rooms.installation.slack.history
    assert history.first_sign(rooms.everything.id, lunch.ts) is None


async def test_only_approvers_decide(rooms: Rooms, model: PlayedModel) -> None:
    question = "Take guestbook back"
    model.parts[question] = [[Call("start_workflow", {"name": "roll_back_application"})], ["It is back.\n"]]
    thread = await rooms.installation.asks(rooms.ada, question, rooms.guarded)
    await thread.until(lambda: thread.has_button("Fill in"))
    await rooms.ada.presses(thread.with_button("Fill in"), "Fill in")
    await thread.until(lambda: rooms.ada.has_modal)
    await rooms.ada.fills_in(rooms.ada.modal, {"application": "guestbook", "reason": "It crashes"})
    await rooms.ada.submits()
    await thread.until(lambda: thread.has_button("Approve"))
    await rooms.ada.presses(thread.with_button("Approve"), "Approve")
    await thread.until(
        lambda: any(f"Only <@{rooms.bob.id}> may decide this." in one for one in thread.ephemeral_messages)
    )
    await rooms.bob.presses(thread.with_button("Approve"), "Approve")
    await thread.answered()
    assert f"Approved by <@{rooms.bob.id}>" in thread.text
    thread.check()


async def test_where_streams_cannot_be_had_messages_are_written_and_changed(rooms: Rooms, model: PlayedModel) -> None:
    question = "What is a node?"
    model.parts[question] = [["A node.\n\n", "Runs pods.\n"]]
    rooms.german.streaming_error = "channel_type_not_supported"
    try:
        thread = await rooms.installation.asks(rooms.ada, question, rooms.german)
        answer = await thread.answered()
    finally:
        rooms.german.streaming_error = ""
    assert "A node.\n\nRuns pods." in answer.text
    assert not answer.streamed
    thread.check()


async def test_another_bot_is_answered_without_a_stream(rooms: Rooms, model: PlayedModel) -> None:
    question = "What is a cluster?"
    model.parts[question] = [["Many nodes.\n"]]
    slack = rooms.installation.slack
    other = slack.person("deploys", is_bot=True)
    rooms.german.members.add(other.id)
    before = len(slack.calls("chat.startStream"))
    thread = await rooms.installation.asks(other, question, rooms.german)
    await thread.answered()
    assert "Many nodes." in thread.said
    assert len(slack.calls("chat.startStream")) == before
