"""The stand-in as a whole."""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Any

import httpx

from ai_platform_engineering.integrations.slack_bot.app_setup import manifest
from ai_platform_engineering.integrations.slack_bot.clock import Clock, SystemClock
from ai_platform_engineering.integrations.slack_bot.preview.workspace import SlackWorkspace, Transcript
from ai_platform_engineering.settings import load_settings
from tests.integrations.slack_bot.standin.calls import ApiCall
from tests.integrations.slack_bot.standin.clock import VirtualClock
from tests.integrations.slack_bot.standin.deliveries import BUSY_ACK_SECONDS, Ack, Deliveries
from tests.integrations.slack_bot.standin.directory import App, Conversation, ConversationKind, Directory
from tests.integrations.slack_bot.standin.events import is_subscribed
from tests.integrations.slack_bot.standin.faults import Faults
from tests.integrations.slack_bot.standin.history import History
from tests.integrations.slack_bot.standin.http_route import HttpRoute
from tests.integrations.slack_bot.standin.people import Person
from tests.integrations.slack_bot.standin.plain import plain_transcript
from tests.integrations.slack_bot.standin.server import Server
from tests.integrations.slack_bot.standin.socket_mode import Sockets
from tests.integrations.slack_bot.standin.state import State
from tests.integrations.slack_bot.standin.violations import Violation

WITHIN = 150.0
"""Seconds to wait for what takes a few on an idle machine."""


class Slack:
    """A workspace with one app in it, and the ways for a test to look at it and to act in it."""

    def __init__(self, state: State, client: httpx.AsyncClient) -> None:
        self.state = state
        self.faults = Faults()
        self.sockets = Sockets(state)
        self.deliveries = Deliveries(state, self.sockets)
        self.server = Server(state, self.faults, self.sockets)
        self.echoes = True
        """Whether the bot gets events for its own messages, as Slack does."""
        self._client = client
        state.tell = self._tell

    @property
    def app(self) -> App:
        return self.state.directory.app

    @property
    def directory(self) -> Directory:
        return self.state.directory

    @property
    def workspace(self) -> SlackWorkspace:
        self.state.let_time_pass()
        return self.state.workspace

    @property
    def history(self) -> History:
        return self.state.history

    @property
    def violations(self) -> list[Violation]:
        return self.state.violations

    @property
    def acks(self) -> list[Ack]:
        return self.deliveries.acks

    @property
    def api_url(self) -> str:
        return f"{self.state.url}/api/"

    @property
    def mention(self) -> str:
        """How people name the bot in a message."""
        return f"<@{self.app.user_id}>"

    @property
    def is_busy(self) -> bool:
        """Whether something is under way that will end without time passing."""
        return self.server.under_way > 0 or self.deliveries.is_waiting

    def calls(self, method: str = "") -> list[ApiCall]:
        return [call for call in self.state.calls if method in ("", call.method)]

    def person(self, name: str, *, is_bot: bool = False) -> Person:
        user = self.directory.add_user(name, is_bot=is_bot)
        self.state.workspace.names[user.id] = name
        return Person(self.state, self.deliveries, user)

    def channel(
        self, name: str, *people: Person, kind: ConversationKind = "channel", with_bot: bool = True
    ) -> Conversation:
        members = {person.id for person in people} | ({self.app.user_id} if with_bot else set())
        conversation = self.directory.add_conversation(kind, name, members)
        self.state.workspace.names[conversation.id] = name
        return conversation

    def direct(self, person: Person) -> Conversation:
        """The direct messages between a person and the bot."""
        return self.directory.direct(person.id)

    def calls_bot_at(self, url: str) -> HttpRoute:
        """From now on Slack calls the bot over HTTP, at that address, instead of through its sockets."""
        route = HttpRoute(url, self.app.signing_secret, self._client)
        self.deliveries.route = route
        return route

    def environ(self, *, socket_mode: bool = True) -> dict[str, str]:
        """The variables with which a bot finds this workspace."""
        way = {"SLACK_APP_TOKEN": self.app.app_token}
        if not socket_mode:
            way = {"SLACK_SIGNING_SECRET": self.app.signing_secret}
        return {"SLACK_BOT_TOKEN": self.app.bot_token, "SLACK_API_URL": self.api_url, **way}

    def transcript(self, channel: Conversation | str, thread_ts: str = "") -> Transcript:
        return self.workspace.transcript(channel if isinstance(channel, str) else channel.id, thread_ts)

    def text(self, channel: Conversation | str, thread_ts: str = "") -> str:
        """What is to be seen, as plain text."""
        return plain_transcript(self.transcript(channel, thread_ts), self.state.workspace.name)

    async def until(self, holds: Callable[[], Any], within: float = WITHIN) -> None:
        """Wait until it holds; if it does not in so many seconds, what is to be seen is the explanation."""
        end = time.monotonic() + within
        while not holds():
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError(f"it did not come to that in {within:g} s; to be seen is\n\n{self._everything()}")
            await self.state.change(min(left, 0.05))

    async def connected(self, within: float = WITHIN) -> None:
        """Wait until the bot has connected in Socket Mode."""
        await self.until(lambda: any(not connection.leaving for connection in self.sockets.connections), within)

    def _tell(self, event: dict[str, Any]) -> None:
        author = event.get("user") or event.get("message", event.get("previous_message", {})).get("user")
        if author == self.app.user_id and not self.echoes:
            return
        channel = event.get("channel") or event.get("assistant_thread", {}).get("channel_id")
        if is_subscribed(self.app, event, self.directory.conversations.get(channel or "")):
            self.deliveries.event(event)

    def _everything(self) -> str:
        workspace = self.workspace
        parts = [
            f"# {workspace.name(channel)}\n{self.text(channel, thread_ts)}"
            for channel, thread_ts in workspace.threads()
        ]
        return "\n\n".join([*parts, *map(str, self.violations)])


def our_app() -> App:
    """The app that our own manifest makes."""
    return App.of_manifest(_our_manifest())


@cache
def _our_manifest() -> str:
    return manifest(load_settings({}, env_file=None))


@asynccontextmanager
async def standing_in(*, clock: Clock | None = None, app: App | None = None) -> AsyncIterator[Slack]:
    """A workspace on a free port of this machine, served in this event loop."""
    directory = Directory(app or our_app())
    bot = directory.app.user_id
    workspace = SlackWorkspace(bot=bot, names={bot: directory.app.name})
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            httpx.AsyncClient(trust_env=False, verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        )
        state = State(clock or SystemClock(), directory, workspace, History(bot))
        slack = Slack(state, client)
        if isinstance(clock, VirtualClock):
            clock.busy = lambda: slack.is_busy
        else:
            slack.deliveries.ack_seconds = BUSY_ACK_SECONDS
        state.url = await stack.enter_async_context(slack.server.serving())
        stack.push_async_callback(slack.deliveries.close)
        yield slack
