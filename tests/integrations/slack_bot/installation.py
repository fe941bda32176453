"""An installation: a workspace, a supervisor and the bot; the last two run as processes."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ai_platform_engineering.integrations.slack_bot import words
from ai_platform_engineering.integrations.slack_bot.preview.messages import SlackMessage
from ai_platform_engineering.sandbox.records import GithubRepository
from ai_platform_engineering.sandbox.store import SandboxStore, sandbox_path
from tests.integrations.slack_bot.standin import Conversation, Person, Slack, standing_in
from tests.integrations.slack_bot.standin.plain import plain_message, plain_modal
from tests.integrations.slack_bot.standin.slack import WITHIN
from tests.integrations.slack_bot.standin.typing_in import buttons_in
from tests.ports import port_of, reserve
from tests.servers import CommandLine

GOOD, BAD = "👍", "👎"
STACK = "Traceback (most recent call last)"


@dataclass
class Service:
    """A command that can be killed and started again, at the same address and with the same data."""

    arguments: list[str]
    environ: Mapping[str, str]
    lives: list[CommandLine] = field(default_factory=list)
    _reservation: socket.socket = field(default_factory=reserve)

    def __post_init__(self) -> None:
        self.port = port_of(self._reservation)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def output(self) -> str:
        return "".join(line for life in self.lives for line in life.output)

    @property
    def is_running(self) -> bool:
        process = self.lives[-1].process if self.lives else None
        return process is not None and process.returncode is None

    async def start(self, **more: str) -> None:
        life = CommandLine([*self.arguments, "--port", str(self.port)], {**self.environ, **more})
        self.lives.append(life)
        await life.__aenter__()

    async def kill(self) -> None:
        """As if the power went out."""
        await self.lives[-1].stop(signal.SIGKILL)

    async def stop(self) -> int:
        """The end; it cannot be started again."""
        self._reservation.close()
        return await self.lives[-1].stop() if self.lives else 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Service]:
        try:
            await self.start()
            yield self
        finally:
            await self.stop()


def supervisor_with(folder: Path, **environ: str) -> Service:
    base = {"DATA_DIR": str(folder), "SANDBOX": "true", "OFFLINE_MODEL_DELAY": "0.003"}
    return Service(["serve"], {**base, **environ})


@dataclass
class Installation:
    slack: Slack
    bot: Service
    socket_mode: bool = True

    async def connected(self) -> None:
        """The bot can be reached by Slack."""
        if self.socket_mode:
            await self.slack.connected()
        else:
            self.slack.calls_bot_at(f"{self.bot.url}/slack/events")

    async def restart_bot(self) -> None:
        await self.bot.start()
        await self.connected()

    def person(self, name: str = "ada") -> Person:
        return self.slack.person(name)

    def channel(self, *people: Person, name: str = "platform-help") -> Conversation:
        return self.slack.channel(name, *people)

    async def asks(self, person: Person, question: str, channel: Conversation | None = None) -> Thread:
        """A person mentions the bot, by default in a new channel."""
        channel = channel or self.channel(person)
        asked = await person.says(channel, f"{self.slack.mention} {question}")
        return Thread(self.slack, person, channel, asked.ts)

    def check(self, *secrets: str, also: Mapping[str, str] | None = None, addresses: tuple[str, ...] = ()) -> None:
        """Invariants of every test: Slack's limits hold, and no secret or address is visible to people."""
        slack = self.slack
        assert slack.violations == [], "\n".join(map(str, slack.violations))
        tokens = [slack.app.bot_token, slack.app.app_token, slack.app.signing_secret, *secrets]
        seen = "\n".join(_everything_seen(slack))
        for word in [*tokens, STACK, self.bot.url.removeprefix("http://"), *addresses]:
            assert word not in seen, f"{word} was seen in Slack"
        for name, output in {"the bot": self.bot.output, **(also or {})}.items():
            for word in [*tokens, STACK]:
                assert word not in output, f"{word} is in the log of {name}:\n{output}"


def _everything_seen(slack: Slack) -> Iterator[str]:
    for call in slack.calls():
        yield json.dumps(call.arguments, ensure_ascii=False)
    for message in slack.workspace.messages.values():
        yield plain_message(message)


@asynccontextmanager
async def installation(
    folder: Path,
    supervisor_url: str,
    *,
    socket_mode: bool = True,
    prepare: Callable[[Slack], Mapping[str, str]] = lambda _: {},
    **environ: str,
) -> AsyncIterator[Installation]:
    """A workspace with the bot in it, which asks that supervisor. `prepare` is called before the bot is there, and may
    give it variables."""
    async with standing_in() as slack:
        environ |= prepare(slack)
        base = {"DATA_DIR": str(folder), "SUPERVISOR_URL": supervisor_url, **slack.environ(socket_mode=socket_mode)}
        bot = Service(["slack"], {**base, **environ})
        async with bot.running():
            here = Installation(slack, bot, socket_mode)
            await here.connected()
            yield here


@dataclass
class Thread:
    """A thread as one person sees it."""

    slack: Slack
    person: Person
    channel: Conversation
    ts: str

    @property
    def text(self) -> str:
        return self.person.reads(self.channel, self.ts)

    @property
    def messages(self) -> list[SlackMessage]:
        """What the bot has said, without what only this person sees."""
        seen = self.person.sees(self.channel, self.ts).messages
        return [
            one for one in seen if one.author == self.slack.app.user_id and one.ts != self.ts and not one.ephemeral_for
        ]

    @property
    def ephemeral_messages(self) -> list[str]:
        """The bot's messages that only this person sees."""
        seen = self.person.sees(self.channel, self.ts).messages
        return [plain_message(one) for one in seen if one.ephemeral_for]

    @property
    def answers(self) -> list[SlackMessage]:
        """Messages that can be rated: each ends an answer."""
        return [one for one in self.messages if GOOD in labels(one)]

    @property
    def said(self) -> str:
        """All text of the bot, one message below the other, without plans and buttons."""
        return "\n\n".join(message.text for message in self.messages)

    def with_button(self, label: str) -> SlackMessage:
        found = [message for message in self.messages if label in labels(message)]
        assert found, f"there is no {label}:\n{self.text}"
        return found[-1]

    def has_button(self, label: str) -> bool:
        return any(label in labels(message) for message in self.messages)

    async def until(self, holds: Callable[[], Any], within: float = WITHIN) -> None:
        await self.slack.until(holds, within)

    async def answered(self, count: int = 1, within: float = WITHIN) -> SlackMessage:
        """The answer, once it is there, nothing streams and no button is left to stop anything."""
        await self.until(lambda: len(self.answers) >= count, within)
        await self.until(self.is_at_rest)
        assert len(self.answers) == count, self.text
        return self.answers[-1]

    def is_at_rest(self) -> bool:
        cards = [card for message in self.messages for card in message.cards]
        at_work = any(card.status == "in_progress" or card.title.startswith("Waiting for") for card in cards)
        streams = any(message.streaming for message in self.messages)
        return not (at_work or streams or self.has_button("Stop"))

    async def says(self, text: str, person: Person | None = None) -> SlackMessage:
        return await (person or self.person).says(self.channel, text, self.ts)

    def moments(self) -> list[list[SlackMessage]]:
        """What the bot had said, at every moment."""
        bot = self.slack.app.user_id
        return [
            [one for one in moment.transcript.messages if one.author == bot and one.ts != self.ts]
            for moment in self.slack.history.of(self.channel.id, self.ts)
        ]

    def seen_by(self, person: Person) -> Thread:
        return Thread(self.slack, person, self.channel, self.ts)

    def check(self) -> None:
        """Nothing that was said was taken back, but for the button that stops it."""
        lost = self.slack.history.taken_back(self.channel.id, self.ts)
        lost = [one for one in lost if one.before != words.STOPPABLE]
        assert lost == [], str(lost)


def is_done(folder: Path, message: SlackMessage) -> bool:
    """Whether the bot with that folder has delivered everything for a message."""
    with closing(sqlite3.connect(f"file:{folder / 'slack.sqlite'}?mode=ro", uri=True)) as file:
        asked = "SELECT done FROM run WHERE id LIKE ?"
        return file.execute(asked, (f"%-{message.channel}-{message.ts}",)).fetchall() == [(1,)]


def labels(message: SlackMessage) -> set[str]:
    return {button.label for button in buttons_in(message.blocks)}


def modal_text(person: Person) -> str:
    return plain_modal(person.modal)


def repositories(supervisor: Service) -> list[str]:
    """The repositories of the sandbox that this process looks after."""
    with SandboxStore(sandbox_path(Path(supervisor.environ["DATA_DIR"]))).read() as session:
        return [repository.name for repository in session.all(GithubRepository)]
