"""The bot in a test's own process: Slack is the stand-in, over HTTP; the supervisor is a script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from a2a.types.a2a_pb2 import SendMessageRequest, StreamResponse, Task, TaskArtifactUpdateEvent

from ai_platform_engineering.events import Event
from ai_platform_engineering.integrations.slack_bot.assembly import assemble
from ai_platform_engineering.integrations.slack_bot.bot import Bot
from ai_platform_engineering.integrations.slack_bot.channels import load_channels
from ai_platform_engineering.integrations.slack_bot.clock import Clock
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from ai_platform_engineering.integrations.slack_bot.store.memory import MemoryStore
from ai_platform_engineering.integrations.slack_bot.supervisor_link import SupervisorLink
from ai_platform_engineering.integrations.slack_bot.web_api.web_client import web_client
from ai_platform_engineering.settings import load_settings
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode, stamp
from tests.integrations.slack_bot.standin import Conversation, Person, Slack

Script = Callable[[str], Iterable[tuple[float, Event]]]
"""From a question to what happens then, each event after a pause."""


class ScriptedSupervisor:
    """What the bot's client has of a supervisor, as far as it is used for questions."""

    resumes = True
    address = "http://scripted"

    def __init__(self, script: Script, clock: Clock) -> None:
        self.client = self
        self._script = script
        self._clock = clock
        self._numbers = count(1)
        self.first_event: dict[str, float] = {}
        """When the first event of a question was sent."""

    async def send_message(self, request: SendMessageRequest) -> AsyncIterator[StreamResponse]:
        question = request.message.parts[0].text
        stream = StreamState(f"task-{next(self._numbers)}", request.message.context_id, "trace")
        yield StreamResponse(task=Task(id=stream.task_id, context_id=stream.context_id))
        seq = count(1)
        for update in begin(stream):
            yield _sent(update, next(seq))
        for pause, event in self._script(question):
            await self._clock.sleep(pause)
            self.first_event.setdefault(question, self._clock.now())
            for update in encode(stream, event):
                yield _sent(update, next(seq))


class ScriptedLink(SupervisorLink):
    def __init__(self, supervisor: ScriptedSupervisor) -> None:
        super().__init__(load_settings({}, env_file=None))
        self._scripted = supervisor

    async def supervisor(self, *, wait: bool = True) -> Any:
        return self._scripted


@dataclass
class Stage:
    slack: Slack
    bot: Bot
    supervisor: ScriptedSupervisor

    async def ask(self, person: Person, channel: Conversation, question: str) -> ThreadPlace:
        """A person asks the bot; returns the thread of the answer."""
        asked = await person.says(channel, question)
        place = ThreadPlace(self.slack.directory.team_id, channel.id, asked.ts)
        asker = SlackUser(place.team, person.id, person.user.is_bot)
        await self.bot.take(Incoming(place, asked.ts, question, asker))
        return place

    async def done(self, within: float = 180.0) -> None:
        await self.slack.until(lambda: not self.bot.open_threads, within)

    def answers(self, place: ThreadPlace) -> list[SlackMessage]:
        """What the bot has written in a thread."""
        shown = self.slack.transcript(place.channel, place.thread_ts).messages
        return [message for message in shown if message.author == self.slack.app.user_id and not message.deleted]

    def text(self, place: ThreadPlace) -> str:
        return "\n\n".join(message.text for message in self.answers(place))


@asynccontextmanager
async def staged(slack: Slack, script: Script, clock: Clock) -> AsyncIterator[Stage]:
    # The bot is called by the test.
    slack.state.tell = lambda event: None
    supervisor = ScriptedSupervisor(script, clock)
    async with web_client(slack.app.bot_token, slack.api_url) as client:
        client.api_call = _under_way(slack, client.api_call)  # type: ignore[method-assign]
        settings = load_settings({}, env_file=None)
        bot = assemble(settings, client, MemoryStore(), load_channels(None), clock, ScriptedLink(supervisor))
        await bot.start()
        try:
            yield Stage(slack, bot, supervisor)
        finally:
            await bot.aclose()


def _under_way(slack: Slack, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same calls; a virtual clock waits for them also before they reach the stand-in."""

    async def counted(*arguments: Any, **options: Any) -> Any:
        slack.server.under_way += 1
        try:
            return await call(*arguments, **options)
        finally:
            slack.server.under_way -= 1

    return counted


def _sent(update: Any, seq: int) -> StreamResponse:
    stamp(update, seq)
    if isinstance(update, TaskArtifactUpdateEvent):
        return StreamResponse(artifact_update=update)
    return StreamResponse(status_update=update)
