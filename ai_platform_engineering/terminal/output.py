"""Where a run is shown, and outputs for readers that are no terminal: plain lines, and JSON."""

from __future__ import annotations

import time
from typing import Protocol, TextIO

from ai_platform_engineering.events import Event
from ai_platform_engineering.events_json import Asked, encode_line
from ai_platform_engineering.terminal.plain import plain_lines
from ai_platform_engineering.terminal.view import Notice, View


class Output(Protocol):
    """Shows one run after the other."""

    def begin(self, asked: Asked, *, typed: bool, view: View) -> None:
        """A run begins, or goes on from `view`; `typed` where the person can still see what they asked."""

    def take(self, item: Event | Notice) -> None:
        """Something happened."""

    def draw(self, view: View) -> None:
        """A good moment to show the run as it is now; there are about twelve a second."""

    def end(self, view: View) -> None:
        """The run is over."""


class PlainOutput:
    """The answer goes to `answers`, everything else to `progress`: a pipe gets the answer and nothing else."""

    def __init__(self, answers: TextIO, progress: TextIO) -> None:
        self._streams = {"answer": answers, "progress": progress}
        self._facts = 0
        self._lines = 0

    def begin(self, asked: Asked, *, typed: bool, view: View) -> None:
        self._facts, self._lines = len(view.facts), len(plain_lines(view.facts))

    def take(self, item: Event | Notice) -> None:
        pass

    def draw(self, view: View) -> None:
        if len(view.facts) == self._facts:
            return
        lines = plain_lines(view.facts)
        for line in lines[self._lines :]:
            print(line.text, file=self._streams[line.channel], flush=True)
        self._facts, self._lines = len(view.facts), len(lines)

    def end(self, view: View) -> None:
        self.draw(view)


class JsonOutput:
    """Every event as one line of JSON, with the seconds since the question."""

    def __init__(self, events: TextIO, notices: TextIO) -> None:
        self._events = events
        self._notices = notices
        self._begun = 0.0

    def begin(self, asked: Asked, *, typed: bool, view: View) -> None:
        self._begun = time.monotonic()
        print(encode_line(asked, 0.0), file=self._events, flush=True)

    def take(self, item: Event | Notice) -> None:
        if isinstance(item, Notice):
            print(item.text, file=self._notices, flush=True)
        else:
            print(encode_line(item, time.monotonic() - self._begun), file=self._events, flush=True)

    def draw(self, view: View) -> None:
        pass

    def end(self, view: View) -> None:
        pass
