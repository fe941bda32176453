"""Batching: when what waits to be sent goes out. The text itself is elsewhere, so a batch that failed is not lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

GATHER_SECONDS: Final = 0.4
"""For so long a piece without a line break waits for more, at most."""
LARGE: Final = 800
"""So many characters do not wait for more."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds between two changes of a message, as the limits allow it at the moment."""

    stream: float = 0.7
    update: float = 1.5


@dataclass(frozen=True, slots=True)
class StreamBuffer:
    """`length` is how much there is to be told, `line` whether a line has ended in what waits, `sent` how much went out
    with the last batch, which was at `flushed`."""

    length: int = 0
    line: bool = False
    sent: int = 0
    since: float = 0.0
    flushed: float = 0.0

    def grown(self, length: int, line: bool, now: float) -> StreamBuffer:
        """More has come: now there are `length` characters; `line` says whether a line has ended in the new ones."""
        if length <= self.length:
            return replace(self, length=length)
        since = now if self.length <= self.sent else self.since
        return replace(self, length=length, line=self.line or line, since=since)

    def taken(self, now: float) -> StreamBuffer:
        """All that waited goes out."""
        return replace(self, sent=self.length, line=False, flushed=now)

    def given_back(self) -> StreamBuffer:
        """The last batch did not go out: with all that waits, it need not wait any longer."""
        return replace(self, sent=0, flushed=0.0)

    def due(self, pace: float) -> float | None:
        """When the next batch goes out; None while nothing waits."""
        waiting = self.length - self.sent
        if waiting <= 0:
            return None
        if self.flushed == 0.0:
            return self.since
        gathered = self.since if self.line or waiting >= LARGE else self.since + GATHER_SECONDS
        return max(gathered, self.flushed + pace)
