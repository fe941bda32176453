"""`platform-engineer replay`: plays a recorded run in the terminal, at its original speed or faster."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import nullcontext

from ai_platform_engineering.events import Ending, Event
from ai_platform_engineering.events_json import Asked, Line
from ai_platform_engineering.recordings import CUT_SHORT, read_recording, runs_of
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.terminal.chat import output_for, terminal_console
from ai_platform_engineering.terminal.keyboard import echo_off
from ai_platform_engineering.terminal.output import play
from ai_platform_engineering.terminal.reducer import resume_view
from ai_platform_engineering.terminal.view import TerminalNotice, View


def replay(file: str, speed: float | None, settings: Settings) -> int:
    """Play `file` (`-` is standard input). `speed` is a factor; None plays everything at once."""
    lines = read_recording(file)
    output = output_for(terminal_console(settings.environ))
    with echo_off() if file != "-" else nullcontext():
        view = View()
        for asked, run in runs_of(lines):
            view = resume_view(view)
            output.begin(asked or Asked(""), typed=asked is None, view=view)
            view = play(Recording(run, speed), output, view)
    return 0


class Recording:
    """A recorded run as a `RunSource`: each event is emitted at its recorded time, divided by `speed`."""

    def __init__(self, lines: Iterable[Line], speed: float | None) -> None:
        self._lines = list(lines)
        self._speed = speed
        first = next((line.at for line in self._lines if line.at is not None), 0.0)
        self._begun = time.monotonic()
        self._first = first
        self._place = 0
        self._notice_sent = False

    def next(self, timeout: float) -> Event | TerminalNotice | None:
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

    def _end(self) -> TerminalNotice:
        last = self._lines[-1].item
        if isinstance(last, Ending) or self._notice_sent:
            raise EOFError
        self._notice_sent = True
        return TerminalNotice(CUT_SHORT)
