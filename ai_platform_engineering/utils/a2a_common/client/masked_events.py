"""Masks the secrets of this process in the events of a remote agent, also a secret that is split over two events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ai_platform_engineering.events import Canceled, Event, Failed, FinalResult, InputRequired, MessageEnded, TextDelta
from ai_platform_engineering.utils.redact import KnownSecrets


class MaskedEvents:
    """The events of one run. The end of a text that may begin a secret is sent with the next piece of its message."""

    def __init__(self, secrets: KnownSecrets) -> None:
        self._secrets = secrets
        self._ends: dict[tuple[str, str], TextDelta] = {}

    def feed(self, events: Iterable[Event]) -> Iterator[Event]:
        if not self._secrets:
            yield from events
            return
        for event in events:
            match event:
                case TextDelta():
                    yield from self._text(event)
                case MessageEnded(agent=agent, message_id=message_id):
                    yield from self._flush(agent, message_id)
                    yield event
                case InputRequired() | FinalResult() | Failed() | Canceled():
                    for agent, message_id in [*self._ends]:
                        yield from self._flush(agent, message_id)
                    yield self._secrets.masked(event)
                case _:
                    yield self._secrets.masked(event)

    def _text(self, event: TextDelta) -> Iterator[Event]:
        key = (event.agent, event.message_id)
        before = self._ends.pop(key, None)
        text, end = self._secrets.split(f"{before.text}{event.text}" if before else event.text)
        if end:
            self._ends[key] = replace(event, text=end)
        if text:
            yield replace(event, text=text)

    def _flush(self, agent: str, message_id: str) -> Iterator[Event]:
        if (end := self._ends.pop((agent, message_id), None)) is not None:
            yield replace(end, text=self._secrets(end.text))
