"""Batching of streamed text: when the next batch is due. The text is in the content, so a failed batch is not lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

GATHER_SECONDS: Final = 0.4
"""Maximum wait of text without a line break for more text."""
LARGE_BATCH: Final = 800
"""Characters from which a batch is sent at once."""


@dataclass(frozen=True, slots=True)
class WritePace:
    """Minimum seconds between two writes to a message, under the current load."""

    stream: float = 0.7
    update: float = 1.5


@dataclass(frozen=True, slots=True)
class StreamBuffer:
    """`length` is the length of the text, `sent` the length at the last batch, which was sent at `flushed`. `line` says
    whether the unsent part has a line break, `since` when it began."""

    length: int = 0
    line: bool = False
    sent: int = 0
    since: float = 0.0
    flushed: float = 0.0

    def grown(self, length: int, line: bool, now: float) -> StreamBuffer:
        """The buffer with a text of `length` characters; `line` says whether the new ones have a line break."""
        if length <= self.length:
            return replace(self, length=length)
        since = now if self.length <= self.sent else self.since
        return replace(self, length=length, line=self.line or line, since=since)

    def after_flush(self, now: float) -> StreamBuffer:
        """The buffer after a batch with all of the text."""
        return replace(self, sent=self.length, line=False, flushed=now)

    def after_failed_flush(self) -> StreamBuffer:
        """The buffer after a failed batch: the whole text is due at once."""
        return replace(self, sent=0, flushed=0.0)

    def due(self, pace: float) -> float | None:
        """When the next batch is due; None if there is nothing to send."""
        waiting = self.length - self.sent
        if waiting <= 0:
            return None
        if self.flushed == 0.0:
            return self.since
        complete = self.since if self.line or waiting >= LARGE_BATCH else self.since + GATHER_SECONDS
        return max(complete, self.flushed + pace)
