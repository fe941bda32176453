"""Messages: mentions, direct messages, and replies in threads of the bot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from slack_bolt.async_app import AsyncApp

from ai_platform_engineering.integrations.slack_bot.listeners.context import ListenerContext
from ai_platform_engineering.integrations.slack_bot.listeners.incoming import MessageFilter, MessageNotice
from ai_platform_engineering.integrations.slack_bot.listeners.names import DisplayNames
from ai_platform_engineering.integrations.slack_bot.listeners.private_notices import post_ephemeral
from ai_platform_engineering.integrations.slack_bot.listeners.readable import mentions
from ai_platform_engineering.integrations.slack_bot.listeners.requests import SlackLocation
from ai_platform_engineering.integrations.slack_bot.listeners.texts import NOT_HERE, help_text
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser

FILES: Final = "I cannot read files yet. Write what you need, with the part of the file that matters."


class Messages:
    def __init__(self, context: ListenerContext) -> None:
        self._context = context
        self._filter = MessageFilter(context.identity, context.channels, context.store)
        self._names = DisplayNames(context.client)

    def listen(self, app: AsyncApp) -> None:
        # For a mention in a channel Slack sends both events, in any order, for the same message.
        app.event("app_mention")(self.on_message)
        app.event("message")(self.on_message)

    async def on_message(self, event: Mapping[str, Any]) -> None:
        match self._filter.incoming(event):
            case Incoming() as incoming:
                others = mentions(event.get("text") or "") - {self._context.identity.user}
                if others:
                    named = self._filter.incoming(event, await self._names.of(others))
                    incoming = named if isinstance(named, Incoming) else incoming
                if sentence := await self._context.bot.take(incoming):
                    self._notify(incoming.person, incoming.place.channel, event.get("thread_ts") or "", sentence)
            case MessageNotice() as notice:
                if self._context.first_time("notice", f"{notice.channel}/{notice.ts}"):
                    self._notify(notice.person, notice.channel, notice.thread_ts, self._sentence(notice))
            case None:
                pass

    def _notify(self, person: SlackUser, channel: str, thread_ts: str, sentence: str) -> None:
        location = SlackLocation(person, channel, thread_ts)
        self._context.background.start(post_ephemeral(self._context.client, location, sentence))

    def _sentence(self, notice: MessageNotice) -> str:
        match notice.about:
            case "not_here":
                return NOT_HERE
            case "files":
                return FILES
            case "nothing":
                return help_text(self._context.command)
