"""Decides which messages are for the bot: an event in, an `Incoming`, a notice or None out. No I/O except the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from ai_platform_engineering.integrations.slack_bot.channels import Channel, Channels
from ai_platform_engineering.integrations.slack_bot.listeners.readable import mentions, readable
from ai_platform_engineering.integrations.slack_bot.listeners.requests import Identity
from ai_platform_engineering.integrations.slack_bot.places import Incoming, SlackUser, ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store import BotStore

# Every other subtype is about a message (edited, deleted) or about a channel (a member joined).
_MESSAGE_SUBTYPES: Final = {None, "file_share", "thread_broadcast", "bot_message"}
_SLACKBOT: Final = "USLACKBOT"
MAX_CHARACTERS: Final = 40_000
CUT: Final = "\n\n(The rest of this message was too long and is left out.)"


@dataclass(frozen=True, slots=True)
class MessageNotice:
    """A message without a question that needs a private notice: the bot is not enabled here, or the message is empty
    or has only files. `thread_ts` is empty outside of threads."""

    about: Literal["not_here", "nothing", "files"]
    channel: str
    thread_ts: str
    ts: str
    person: SlackUser


@dataclass(frozen=True, slots=True)
class MessageFilter:
    identity: Identity
    channels: Channels
    store: BotStore

    def incoming(
        self, event: Mapping[str, Any], names: Mapping[str, str] | None = None
    ) -> Incoming | MessageNotice | None:
        """Parse a `message` or `app_mention` event; both give the same result. `names` are people's names by id."""
        person = self._person(event)
        if person is None or event.get("subtype") not in _MESSAGE_SUBTYPES:
            return None
        channel_id, ts, thread_ts = event["channel"], event["ts"], event.get("thread_ts") or ""
        direct = event.get("channel_type") in {"im", "app_home"} or channel_id.startswith("D")
        raw = event.get("text") or ""
        addressed = self.identity.user in mentions(raw) or event.get("type") == "app_mention" or direct
        channel = self.channels.of(channel_id, direct=direct)
        if person.is_bot and (direct or not addressed or not channel.enabled):
            return None
        if not channel.enabled:
            return MessageNotice("not_here", channel_id, thread_ts, ts, person) if addressed else None
        place = ThreadPlace(self.identity.team, channel_id, thread_ts or ts)
        quiet = not addressed
        if quiet:
            mode = self._unmentioned_mode(place, ts, channel)
            if mode is None:
                return None
            quiet = mode == "quiet"
        text = readable(raw, without=self.identity.user, names=names)
        if not text:
            about: Literal["files", "nothing"] = "files" if event.get("files") else "nothing"
            return MessageNotice(about, channel_id, thread_ts, ts, person) if addressed and not person.is_bot else None
        return Incoming(place, ts, _cut(text), person, quiet, channel.prompt)

    def _person(self, event: Mapping[str, Any]) -> SlackUser | None:
        user, bot = event.get("user"), event.get("bot_id")
        if user in {self.identity.user, _SLACKBOT} or (bot and bot == self.identity.bot):
            return None
        team = event.get("user_team") or event.get("team") or self.identity.team
        author = user or bot
        return SlackUser(team, author, is_bot=bool(bot)) if author else None

    def _unmentioned_mode(self, place: ThreadPlace, ts: str, channel: Channel) -> Literal["normal", "quiet"] | None:
        """How to run a message that does not mention the bot: like a mention, quietly, or not at all."""
        if place.thread_ts == ts:
            return "quiet" if channel.answer == "all" else None
        if self.store.session(place) is None:
            return None
        latest = self.store.latest_run(place)
        return "quiet" if latest is not None and latest.incoming.quiet else "normal"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else text[:MAX_CHARACTERS] + CUT
