"""`platform-engineer replay`: plays a recorded run in the terminal, in its own time or faster."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path

from ai_platform_engineering.events import Ending, Event
from ai_platform_engineering.events_json import Asked, EventFormatError, Line, decode_line
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.terminal.chat import output_for, terminal_console
from ai_platform_engineering.terminal.playback import play
from ai_platform_engineering.terminal.prompt import silent_keys
from ai_platform_engineering.terminal.reducer import go_on
from ai_platform_engineering.terminal.view import Notice, View

CUT_SHORT = "The recording ends here, before the run did."


class RecordingError(Exception):
    """A recording that cannot be played; the text says which and why."""


def replay(file: str, speed: float | None, settings: Settings) -> int:
    """Play `file`, or standard input where it is `-`; `speed` is a factor, nothing for at once."""
    lines = read_recording(file)
    output = output_for(terminal_console(settings.environ))
    with silent_keys() if file != "-" else nullcontext():
        view = View()
        for asked, run in runs_of(lines):
            view = go_on(view)
            output.begin(asked or Asked(""), typed=asked is None, view=view)
            view = play(Recording(run, speed), output, view)
    return 0


def read_recording(file: str) -> list[Line]:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise RecordingError(f"{file} cannot be read: {error.strerror}.") from None
    lines = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                lines.append(decode_line(line))
            except EventFormatError as error:
                raise RecordingError(f"{file}, line {number}: {error}") from None
    if not lines:
        raise RecordingError(f"{file} is empty; a recording has one JSON object a line.")
    return lines


def runs_of(lines: Iterable[Line]) -> Iterator[tuple[Asked | None, list[Line]]]:
    """The runs of a recording, each with its question where the recording has it."""
    asked: Asked | None = None
    for is_question, group in groupby(lines, key=lambda line: isinstance(line.item, Asked)):
        if is_question:
            *_, last = group
            asked = last.item if isinstance(last.item, Asked) else None
        else:
            yield asked, list(group)
            asked = None


class Recording:
    """A recorded run as a source: each event comes when its time has come."""

    def __init__(self, lines: Iterable[Line], speed: float | None) -> None:
        self._lines = list(lines)
        self._speed = speed
        first = next((line.at for line in self._lines if line.at is not None), 0.0)
        self._begun = time.monotonic()
        self._first = first
        self._place = 0
        self._told = False

    def next(self, timeout: float) -> Event | Notice | None:
        if self._place == len(self._lines):
            return self._end()
        line = self._lines[self._place]
        if self._speed is not None and line.at is not None:
            wait = self._begun + (line.at - self._first) / self._speed - time.monotonic()
            if wait > 0:
                time.sleep(min(wait, timeout))
                if wait > timeout:
                    return None
        self._place += 1
        return None if isinstance(line.item, Asked) else line.item

    def _end(self) -> Notice:
        last = self._lines[-1].item
        if isinstance(last, Ending) or self._told:
            raise EOFError
        self._told = True
        return Notice(CUT_SHORT)
