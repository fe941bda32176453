"""Whether something arrived in a thread although nobody said so.

Messages are found by the metadata they were posted with, streams by what they begin with, files by their id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.clock import Clock
from ai_platform_engineering.integrations.slack_bot.places import Place
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    File,
    Piece,
    PostForm,
    PostMessage,
    StartStream,
    UploadFile,
)
from ai_platform_engineering.integrations.slack_bot.web_api.budget import Budget
from ai_platform_engineering.integrations.slack_bot.web_api.outcomes import Declined, Done, Outcome, TooMany, outcome_of
from ai_platform_engineering.integrations.slack_bot.web_api.requests import EVENT_TYPE, Job

Message = Mapping[str, Any]
Wanted = Callable[[Message], bool]

_LOOKS: Final = (0.0, 2.0)
"""Seconds to wait before each look: what Slack was still about to do is there at the second."""
_MAX_PAUSE: Final = 30.0
_PAGE: Final = 200
_KEPT: Final = 10_000
_SIGNATURE: Final = 60
_PLAIN: Final = re.compile(r"\w[\w\s.,;!?*_#'-]*")


class Lookup:
    def __init__(self, client: AsyncWebClient, budget: Budget, clock: Clock) -> None:
        self._client = client
        self._budget = budget
        self._clock = clock
        self._known: dict[tuple[str, str], None] = {}
        self._own: frozenset[str] = frozenset()

    def know(self, channel: str, ts: str) -> None:
        """That message is accounted for."""
        self._known[channel, ts] = None
        if len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]

    async def find(self, job: Job, wanted: Wanted) -> str | None:
        """The message of ours that the job has made and that nobody knows yet; empty if it is not there, None if that
        cannot be found out."""
        for pause in _LOOKS:
            if pause:
                await self._clock.sleep(pause)
            messages = await self._messages(job)
            if messages is None:
                return None
            for message in messages:
                ts = str(message.get("ts") or "")
                if (job.place.channel, ts) not in self._known and wanted(message):
                    self.know(job.place.channel, ts)
                    return ts
        return ""

    async def _messages(self, job: Job) -> list[Message] | None:
        """Our own messages in the thread."""
        own = await self._identity()
        if not own:
            return None
        found: list[Message] = []
        cursor: str | None = None
        while cursor != "":
            page = await self._page(job, cursor)
            if page is None:
                return None
            found.extend(page.get("messages") or ())
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
        return [message for message in found if _is_reply(message, job.place) and not own.isdisjoint(_authors(message))]

    async def _page(self, job: Job, cursor: str | None) -> Mapping[str, Any] | None:
        """A part of the thread; None if Slack does not want to show it. Slack being away is waited for: whoever made
        the message again now would have it there twice."""
        for again in count():
            while wait := self._budget.wait("conversations.replies", job.place.channel, job.holder, urgent=True):
                await self._clock.sleep(wait)
            outcome = await self._replies(job, cursor)
            match outcome:
                case Done(data=data):
                    return data
                case Declined(error="thread_not_found" | "channel_not_found"):
                    return {}
                case Declined():
                    return None
                case TooMany(seconds=seconds):
                    self._budget.hold("conversations.replies", seconds)
                case _:
                    await self._clock.sleep(min(2.0**again, _MAX_PAUSE))
        return None

    async def _replies(self, job: Job, cursor: str | None) -> Outcome:
        return await outcome_of(
            self._client.conversations_replies(
                channel=job.place.channel,
                ts=job.place.thread_ts,
                oldest=job.after or job.place.thread_ts,
                include_all_metadata=True,
                limit=_PAGE,
                cursor=cursor,
            )
        )

    async def _identity(self) -> frozenset[str]:
        """What Slack calls us; asked once."""
        if not self._own:
            outcome = await outcome_of(self._client.auth_test())
            if isinstance(outcome, Done):
                self._own = frozenset(filter(None, (outcome.data.get("user_id"), outcome.data.get("bot_id"))))
        return self._own


def wanted_of(job: Job) -> Wanted | None:
    """What an operation that makes something is found by."""
    match job.operation:
        case StartStream(piece=piece):
            return begins_with(piece)
        case PostMessage() | PostForm():
            return posted_as(job.number, job.holder)
        case UploadFile(file=file):
            return shares_such(file)
        case _:
            return None


def posted_as(number: int, run: str) -> Wanted:
    """A message that was posted for that operation."""

    def wanted(message: Message) -> bool:
        metadata = message.get("metadata") or {}
        payload = metadata.get("event_payload") or {}
        return metadata.get("event_type") == EVENT_TYPE and (payload.get("number"), payload.get("run")) == (number, run)

    return wanted


def begins_with(piece: Piece) -> Wanted:
    """A stream that began with that. Slack keeps it as it shows it, so only plain words can be compared."""
    heads = (piece.text, piece.plan or "", *(card.title for card in piece.cards), piece.below)
    signature = next(filter(None, map(_signature, heads)), "")

    def wanted(message: Message) -> bool:
        if message.get("files") or (message.get("metadata") or {}).get("event_type") == EVENT_TYPE:
            return False
        return bool(signature) and signature in "".join(map(_letters, _texts(message)))

    return wanted


def shares(file_id: str) -> Wanted:
    """A message with that file."""

    def wanted(message: Message) -> bool:
        return any(file.get("id") == file_id for file in message.get("files") or ())

    return wanted


def shares_such(file: File) -> Wanted:
    """A message with a file of that name and title."""

    def wanted(message: Message) -> bool:
        shared = message.get("files") or ()
        return any((one.get("name"), one.get("title")) == (file.name, file.title) for one in shared)

    return wanted


def _is_reply(message: Message, place: Place) -> bool:
    return message.get("ts") != place.thread_ts


def _authors(message: Message) -> Iterator[str]:
    yield from (message[key] for key in ("user", "bot_id") if isinstance(message.get(key), str))


def _signature(text: str) -> str:
    match = _PLAIN.search(text)
    return _letters(match[0])[:_SIGNATURE] if match else ""


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _texts(value: Any) -> Iterator[str]:
    """Every text that people can read in a message."""
    match value:
        case Mapping():
            for key, part in value.items():
                if isinstance(part, str) and key in ("text", "title"):
                    yield part
                elif not isinstance(part, str):
                    yield from _texts(part)
        case list():
            for part in value:
                yield from _texts(part)
