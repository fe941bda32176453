"""Finds the message of an operation whose response was lost.

Messages are found by their metadata, streams by the beginning of their text, files by their id or name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final

from slack_sdk.web.async_client import AsyncWebClient

from ai_platform_engineering.integrations.slack_bot.clock import Clock
from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    File,
    Piece,
    PostForm,
    PostMessage,
    StartStream,
    UploadFile,
)
from ai_platform_engineering.integrations.slack_bot.web_api.budget import Budget
from ai_platform_engineering.integrations.slack_bot.web_api.outcomes import (
    Declined,
    Done,
    Outcome,
    RateLimited,
    outcome_of,
)
from ai_platform_engineering.integrations.slack_bot.web_api.requests import EVENT_TYPE, Job

Message = Mapping[str, Any]
Matcher = Callable[[Message], bool]

_ATTEMPT_DELAYS: Final = (0.0, 2.0)
"""Seconds to wait before each attempt. The second one also finds an operation that Slack had not finished."""
_MAX_PAUSE: Final = 30.0
_PAGE_SIZE: Final = 200
_MAX_KNOWN: Final = 10_000
_SIGNATURE_LENGTH: Final = 60
_PLAIN: Final = re.compile(r"\w[\w\s.,;!?*_#'-]*")


class Lookup:
    def __init__(self, client: AsyncWebClient, budget: Budget, clock: Clock) -> None:
        self._client = client
        self._budget = budget
        self._clock = clock
        self._known: dict[tuple[str, str], None] = {}
        self._own_ids: frozenset[str] = frozenset()

    def know(self, channel: str, ts: str) -> None:
        """Exclude a message whose operation is known."""
        self._known[channel, ts] = None
        if len(self._known) > _MAX_KNOWN:
            del self._known[next(iter(self._known))]

    async def find(self, job: Job, matches: Matcher) -> str | None:
        """The timestamp of the bot's message that the job created; empty if there is none, None if the thread cannot be
        read."""
        for pause in _ATTEMPT_DELAYS:
            if pause:
                await self._clock.sleep(pause)
            messages = await self._messages(job)
            if messages is None:
                return None
            for message in messages:
                ts = str(message.get("ts") or "")
                if (job.place.channel, ts) not in self._known and matches(message):
                    self.know(job.place.channel, ts)
                    return ts
        return ""

    async def _messages(self, job: Job) -> list[Message] | None:
        """The bot's own_ids messages in the thread."""
        own_ids = await self._identity()
        if not own_ids:
            return None
        found: list[Message] = []
        cursor: str | None = None
        while cursor != "":
            page = await self._page(job, cursor)
            if page is None:
                return None
            found.extend(page.get("messages") or ())
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
        return [
            message for message in found if _is_reply(message, job.place) and not own_ids.isdisjoint(_authors(message))
        ]

    async def _page(self, job: Job, cursor: str | None) -> Mapping[str, Any] | None:
        """A page of the thread's messages; None if Slack denies access. While Slack is unreachable this waits, because
        posting again could create a duplicate."""
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
                case RateLimited(seconds=seconds):
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
                limit=_PAGE_SIZE,
                cursor=cursor,
            )
        )

    async def _identity(self) -> frozenset[str]:
        """The bot's user and bot ids, cached."""
        if not self._own_ids:
            outcome = await outcome_of(self._client.auth_test())
            if isinstance(outcome, Done):
                self._own_ids = frozenset(filter(None, (outcome.data.get("user_id"), outcome.data.get("bot_id"))))
        return self._own_ids


def matcher_of(job: Job) -> Matcher | None:
    """The matcher for an operation that creates something; None for others."""
    match job.operation:
        case StartStream(piece=piece):
            return begins_with(piece)
        case PostMessage() | PostForm():
            return posted_as(job.number, job.holder)
        case UploadFile(file=file):
            return shares_named(file)
        case _:
            return None


def posted_as(number: int, run: str) -> Matcher:
    """Matches a message that was posted for that operation."""

    def matches(message: Message) -> bool:
        metadata = message.get("metadata") or {}
        payload = metadata.get("event_payload") or {}
        return metadata.get("event_type") == EVENT_TYPE and (payload.get("number"), payload.get("run")) == (number, run)

    return matches


def begins_with(piece: Piece) -> Matcher:
    """Matches a stream that began with `piece`. Slack stores the rendered text, so only plain words are compared."""
    heads = (piece.text, piece.plan or "", *(card.title for card in piece.cards), piece.below)
    signature = next(filter(None, map(_signature, heads)), "")

    def matches(message: Message) -> bool:
        if message.get("files") or (message.get("metadata") or {}).get("event_type") == EVENT_TYPE:
            return False
        return bool(signature) and signature in "".join(map(_alphanumeric, _texts(message)))

    return matches


def shares(file_id: str) -> Matcher:
    """Matches a message with that file."""

    def matches(message: Message) -> bool:
        return any(file.get("id") == file_id for file in message.get("files") or ())

    return matches


def shares_named(file: File) -> Matcher:
    """Matches a message with a file of that name and title."""

    def matches(message: Message) -> bool:
        shared = message.get("files") or ()
        return any((one.get("name"), one.get("title")) == (file.name, file.title) for one in shared)

    return matches


def _is_reply(message: Message, place: ThreadPlace) -> bool:
    return message.get("ts") != place.thread_ts


def _authors(message: Message) -> Iterator[str]:
    yield from (message[key] for key in ("user", "bot_id") if isinstance(message.get(key), str))


def _signature(text: str) -> str:
    match = _PLAIN.search(text)
    return _alphanumeric(match[0])[:_SIGNATURE_LENGTH] if match else ""


def _alphanumeric(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _texts(value: Any) -> Iterator[str]:
    """All readable texts in a message."""
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
