"""Outputs that show a run (plain lines and JSON here, the terminal in `screen`), and the loop that feeds them."""

from __future__ import annotations

import time
from typing import Final, Protocol, TextIO

from ai_platform_engineering.events import Event
from ai_platform_engineering.events_json import Asked, encode_line
from ai_platform_engineering.terminal.plain import plain_lines
from ai_platform_engineering.terminal.reducer import reduce
from ai_platform_engineering.terminal.view import TerminalNotice, View
from ai_platform_engineering.utils.characters import clean

FRAME_SECONDS: Final = 1 / 12


class RunSource(Protocol):
    """The items of one run: a live stream or a recording."""

    def next(self, timeout: float) -> Event | TerminalNotice | None:
        """The next item, or None after `timeout` seconds without one. Raises `EOFError` at the end of the run."""


class Output(Protocol):
    """Shows runs, one after the other."""

    def begin(self, asked: Asked, *, typed: bool, view: View) -> None:
        """A run starts, or resumes from `view`. `typed`: the question is still visible where it was typed."""

    def take(self, item: Event | TerminalNotice) -> None:
        """Called for every item of the run."""

    def draw(self, view: View) -> None:
        """Called about twelve times a second with the current view."""

    def end(self, view: View) -> None:
        """The run has ended."""


def play(source: RunSource, output: Output, view: View) -> View:
    """Show the run of `source` on top of `view`, and return the view at its end."""
    due = time.monotonic()
    while True:
        try:
            item = source.next(max(0.0, due - time.monotonic()))
        except EOFError:
            output.end(view)
            return view
        if item is None:
            output.draw(view)
            due = time.monotonic() + FRAME_SECONDS
        else:
            output.take(item)
            view = reduce(view, item)


class PlainOutput:
    """The answer goes to `answers`, everything else to `progress`: a pipe gets the answer and nothing else."""

    def __init__(self, answers: TextIO, progress: TextIO) -> None:
        self._streams = {"answer": answers, "progress": progress}
        self._entries = 0
        self._lines = 0

    def begin(self, asked: Asked, *, typed: bool, view: View) -> None:
        self._entries, self._lines = len(view.transcript), len(plain_lines(view.transcript))

    def take(self, item: Event | TerminalNotice) -> None:
        pass

    def draw(self, view: View) -> None:
        if len(view.transcript) == self._entries:
            return
        lines = plain_lines(view.transcript)
        for line in lines[self._lines :]:
            print(line.text, file=self._streams[line.channel], flush=True)
        self._entries, self._lines = len(view.transcript), len(lines)

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

    def take(self, item: Event | TerminalNotice) -> None:
        if isinstance(item, TerminalNotice):
            print(clean(item.text), file=self._notices, flush=True)
        else:
            print(encode_line(item, time.monotonic() - self._begun), file=self._events, flush=True)

    def draw(self, view: View) -> None:
        pass

    def end(self, view: View) -> None:
        pass
