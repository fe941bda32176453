"""The loop that shows a run: takes what comes, folds it into the view, and lets the output draw now and then."""

from __future__ import annotations

import time
from typing import Final, Protocol

from ai_platform_engineering.events import Event
from ai_platform_engineering.terminal.output import Output
from ai_platform_engineering.terminal.reducer import reduce
from ai_platform_engineering.terminal.view import Notice, View

FRAME_SECONDS: Final = 1 / 12


class Source(Protocol):
    """Where a run comes from."""

    def next(self, timeout: float) -> Event | Notice | None:
        """What comes next, nothing if it does not come in time. Raises `EOFError` when there is no more."""


def play(source: Source, output: Output, view: View) -> View:
    """Show the run that `source` gives, from `view` on; the view of it as it ended."""
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
