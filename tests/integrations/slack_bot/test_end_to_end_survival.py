"""The bot and the supervisor are killed at every bad moment: the answer is there once, and nothing is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest
import pytest_asyncio

from tests.integrations.slack_bot.installation import Installation, Service, Thread, installation, repositories
from tests.integrations.slack_bot.played_model import Call, Pause, PlayedModel
from tests.integrations.slack_bot.standin import Fault, Silence
from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.limits import RateLimits

Choice = Callable[[ApiCall], Fault | None]

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def acme(thinker: Service, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Installation]:
    async with installation(tmp_path_factory.mktemp("bot"), thinker.url, socket_mode=False) as acme:
        acme.slack.deliveries.retries = (0.2,) * 1000
        yield acme
        acme.check(
            "sk-played",
            also={"the supervisor": thinker.output},
            addresses=(thinker.url.removeprefix("http://"),),
        )


@pytest.fixture(autouse=True)
def a_minute_later(acme: Installation) -> None:
    """A bot that comes back does not know its earlier calls, and real bots are not killed every few seconds."""
    acme.slack.state.rates = RateLimits()


async def check_told_once(thread: Thread, *texts: str) -> None:
    await thread.answered()
    for text in texts:
        assert thread.said.count(text) == 1, thread.text
    assert [thread.said.index(text) for text in texts] == sorted(thread.said.index(text) for text in texts)
    thread.check()


@dataclass
class Moment:
    """A run that has come to a certain point. What Slack is called for then goes unanswered, `done` or not."""

    acme: Installation
    model: PlayedModel
    method: str = ""
    done: bool = False
    pauses: tuple[Pause, Pause] = field(default_factory=lambda: (Pause(), Pause()))
    thread: Thread | None = None

    async def come(self) -> None:
        first, second = self.pauses
        question = f"What of {self.method or 'nothing'}, {self.done}?"
        self.model.parts[question] = [["It begins.\n\n", first, "It goes on.\n\n", second, "It ends.\n"]]
        ada = self.acme.person()
        channel = self.acme.channel(ada)
        faults = self.acme.slack.faults
        if self.method:
            faults.choose = _also(faults.choose, channel.id, self.method, Silence(done=self.done))
        thread = self.thread = await self.acme.asks(ada, question, channel)
        if self.method not in {"assistant.threads.setStatus", "chat.startStream"}:
            await thread.until(lambda: "It begins." in thread.said)
        if self.method in {"chat.appendStream", "chat.stopStream"}:
            first.end()
        if self.method == "chat.stopStream":
            second.end()
        if self.method:
            calls = self.acme.slack.calls
            await thread.until(
                lambda: any(
                    (call.get("channel") or call.get("channel_id")) == channel.id for call in calls(self.method)
                )
            )

    def go_on(self) -> None:
        for pause in self.pauses:
            pause.end()


def _also(choose: Choice, channel: str, method: str, fault: Fault) -> Choice:
    """The first call of the method in that channel meets with the fault, too."""
    left = [fault]

    def choice(call: ApiCall) -> Fault | None:
        if left and call.method == method and (call.get("channel") or call.get("channel_id")) == channel:
            return left.pop()
        return choose(call)

    return choice


METHODS = ("", "assistant.threads.setStatus", "chat.startStream", "chat.appendStream", "chat.stopStream")


async def test_killed_at_every_moment_of_a_run(acme: Installation, model: PlayedModel) -> None:
    """Before, while and after Slack was called: it is then unknown whether the call took effect."""
    moments = [Moment(acme, model, method, done) for method in METHODS for done in (True, False)]
    await asyncio.gather(*(moment.come() for moment in moments))
    await acme.bot.kill()
    # One half ends while the bot is away, the other one when it is back.
    for moment in moments[::2]:
        moment.go_on()
    await acme.restart_bot()
    for moment in moments:
        moment.go_on()
    for moment in moments:
        assert moment.thread is not None
        await check_told_once(moment.thread, "It begins.", "It goes on.", "It ends.")


async def test_killed_at_once_after_the_event_was_taken(acme: Installation, model: PlayedModel) -> None:
    question = "What of the beginning?"
    model.parts[question] = [["It was not forgotten.\n"]]
    thread = await acme.asks(acme.person(), question)
    await acme.slack.deliveries.finish()
    await acme.bot.kill()
    await acme.restart_bot()
    await check_told_once(thread, "It was not forgotten.")
    assert len(model.asked(question)) == 1


async def test_what_is_said_while_it_is_away_is_heard_when_it_is_back(acme: Installation, model: PlayedModel) -> None:
    question = "What of the night?"
    model.parts[question] = [["It is over.\n"]]
    await acme.bot.kill()
    thread = await acme.asks(acme.person(), question)
    await acme.restart_bot()
    await check_told_once(thread, "It is over.")


async def test_killed_between_messages_it_remembers_the_conversation(acme: Installation, model: PlayedModel) -> None:
    first, second = "My name is Ada.", "What is my name?"
    model.parts[first] = [["Hello Ada.\n"]]
    model.parts[second] = [["It is Ada.\n"]]
    thread = await acme.asks(acme.person(), first)
    await thread.answered()
    await acme.bot.kill()
    await acme.restart_bot()
    await thread.says(second)
    await thread.answered(2)
    assert thread.said.count("It is Ada.") == 1
    assert model.heard(second) == [first, second]
    thread.check()


async def test_killed_while_a_form_is_open(acme: Installation, model: PlayedModel, thinker: Service) -> None:
    question = "A repository, please"
    model.parts[question] = [[Call("start_workflow", {"name": "create_github_repo", "inputs": {}})], ["It is made.\n"]]
    ada = acme.person()
    thread = await acme.asks(ada, question)
    await thread.until(lambda: thread.has_button("Submit"))
    await acme.bot.kill()
    form = thread.with_button("Submit")
    await ada.fills_in(form, {"repository": "survivor"})
    assert (await ada.presses(form, "Submit")).problem
    await acme.restart_bot()
    await ada.presses(form, "Submit")
    await check_told_once(thread, "It is made.")
    assert repositories(thinker).count("survivor") == 1


async def test_killed_while_the_form_is_being_posted(acme: Installation, model: PlayedModel, thinker: Service) -> None:
    question = "Another repository, please"
    model.parts[question] = [[Call("start_workflow", {"name": "create_github_repo", "inputs": {}})], ["It is made.\n"]]
    ada = acme.person()
    acme.slack.faults.next("chat.postMessage", Silence(done=True))
    thread = await acme.asks(ada, question)
    await thread.until(lambda: thread.has_button("Submit"))
    await acme.bot.kill()
    await acme.restart_bot()
    # The bot looks whether the form arrived before it was killed.
    replies, channel = "conversations.replies", thread.channel.id
    await thread.until(lambda: any(call.ok and call.get("channel") == channel for call in acme.slack.calls(replies)))
    (form,) = [message for message in thread.messages if "Submit" in str(message.blocks)]
    await ada.fills_in(form, {"repository": "survivor-2"})
    await ada.presses(form, "Submit")
    await check_told_once(thread, "It is made.")
    assert not thread.has_button("Submit")
    assert repositories(thinker).count("survivor-2") == 1


async def test_the_supervisor_is_killed_while_the_answer_streams(
    acme: Installation, model: PlayedModel, thinker: Service
) -> None:
    """Its next start continues the run: the text that was cut off is written again, once."""
    question, pause = "What of the supervisor?", Pause()
    model.parts[question] = [["It begins.\n\n", pause, "It ends.\n"]]
    thread = await acme.asks(acme.person(), question)
    await thread.until(lambda: "It begins." in thread.said)
    await thinker.kill()
    pause.end()
    await thinker.start()
    await thread.answered()
    assert thread.said.count("It ends.") == 1
    assert "was stopped" not in thread.said
    thread.check()


async def test_both_are_killed(acme: Installation, model: PlayedModel, thinker: Service) -> None:
    question, pause = "What of both?", Pause()
    model.parts[question] = [["It begins.\n\n", pause, "It ends.\n"]]
    thread = await acme.asks(acme.person(), question)
    await thread.until(lambda: "It begins." in thread.said)
    await asyncio.gather(acme.bot.kill(), thinker.kill())
    pause.end()
    await asyncio.gather(acme.restart_bot(), thinker.start())
    await thread.answered()
    assert thread.said.count("It ends.") == 1
    assert "was stopped" not in thread.said
    thread.check()
