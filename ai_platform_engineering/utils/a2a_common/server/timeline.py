"""A stored task as people read it: its messages and events in their order, and its times as text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from a2a.types.a2a_pb2 import Message, Task

from ai_platform_engineering.events import Event
from ai_platform_engineering.storage.event_log.event_log import Entry
from ai_platform_engineering.utils.a2a_common.server.incoming import question_of
from ai_platform_engineering.utils.a2a_common.wire import Decoder


def timeline(
    submitted: Task, entries: Iterable[Entry], messages: Iterable[tuple[int, Message]], agent: str
) -> Iterator[tuple[int, Event | Message]]:
    """Messages and events, each with a sequence number. A message has the number of the event that follows it, the
    first one 0. A message that no event follows is left out.

    `messages` are those after the first, each with the number of the last event before it.
    """
    pending = deque(messages)
    decoder = Decoder(agent)
    yield 0, first_message(submitted)
    for entry in entries:
        while pending and pending[0][0] < entry.seq:
            yield entry.seq, pending.popleft()[1]
        for event in decoder.feed(entry.event):
            yield entry.seq, event


def first_message(submitted: Task) -> Message:
    return submitted.history[0] if submitted.history else Message()


def first_question(submitted: Task) -> str:
    return question_of(first_message(submitted))


def utc_time(ns: int) -> datetime:
    return datetime.fromtimestamp(ns / 1e9, UTC)


def iso_time(ns: int) -> str:
    return utc_time(ns).isoformat(timespec="milliseconds")
