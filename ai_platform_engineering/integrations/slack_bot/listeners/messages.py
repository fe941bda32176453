"""Messages: mentions, direct messages, and what follows in a thread that the bot is part of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slack_bolt.async_app import AsyncApp

from ai_platform_engineering.integrations.slack_bot.listeners.ephemeral import post_ephemeral
from ai_platform_engineering.integrations.slack_bot.listeners.guidance import NOT_HERE, help_text
from ai_platform_engineering.integrations.slack_bot.listeners.incoming import MessageFilter, Notice
from ai_platform_engineering.integrations.slack_bot.listeners.listening import Listening
from ai_platform_engineering.integrations.slack_bot.listeners.names import Names
from ai_platform_engineering.integrations.slack_bot.listeners.readable import mentions
from ai_platform_engineering.integrations.slack_bot.listeners.requests import SlackLocation
from ai_platform_engineering.integrations.slack_bot.places import Incoming, Person

FILES: Final = "I cannot read files yet. Write what you need, with the part of the file that matters."


class Messages:
    def __init__(self, listening: Listening) -> None:
        self._listening = listening
        self._filter = MessageFilter(listening.identity, listening.channels, listening.store)
        self._names = Names(listening.client)

    def listen(self, app: AsyncApp) -> None:
        # For a mention in a channel Slack sends both, in any order: they are the same message.
        app.event("app_mention")(self.heard)
        app.event("message")(self.heard)

    async def heard(self, event: Mapping[str, Any]) -> None:
        match self._filter.incoming(event):
            case Incoming() as incoming:
                others = mentions(event.get("text") or "") - {self._listening.identity.user}
                if others:
                    named = self._filter.incoming(event, await self._names.of(others))
                    incoming = named if isinstance(named, Incoming) else incoming
                if sentence := await self._listening.bot.take(incoming):
                    self._tell(incoming.person, incoming.place.channel, event.get("thread_ts") or "", sentence)
            case Notice() as notice:
                if self._listening.first_time("notice", f"{notice.channel}/{notice.ts}"):
                    self._tell(notice.person, notice.channel, notice.thread_ts, self._words(notice))
            case None:
                pass

    def _tell(self, person: Person, channel: str, thread_ts: str, sentence: str) -> None:
        location = SlackLocation(person, channel, thread_ts)
        self._listening.background.start(post_ephemeral(self._listening.client, location, sentence))

    def _words(self, notice: Notice) -> str:
        match notice.about:
            case "not_here":
                return NOT_HERE
            case "files":
                return FILES
            case "nothing":
                return help_text(self._listening.command)
