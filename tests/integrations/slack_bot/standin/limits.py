"""How often Slack lets itself be called: per method and minute, and a message a second in each channel."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

MINUTE = 60.0
BURST = 5
"""Messages at once in a channel. Slack says only that short bursts are allowed."""
PACED = "chat.postMessage"
ON_THE_WAY = 0.25
"""Seconds after the answer with `Retry-After` in which calls come that were sent before it was heard."""


@dataclass(slots=True)
class RateLimits:
    _calls: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _channels: dict[str, deque[float]] = field(default_factory=lambda: defaultdict(deque))
    _held: dict[str, tuple[float, float]] = field(default_factory=dict)

    def held(self, method: str, now: float) -> float:
        """Seconds that are left of a time in which the method must not be called, because Slack has said so."""
        return max(0.0, self._held.get(method, (0.0, 0.0))[1] - now)

    def is_known(self, method: str, now: float) -> bool:
        """Whether the caller can have heard that."""
        return now - self._held[method][0] > ON_THE_WAY

    def hold(self, method: str, seconds: float, now: float) -> None:
        self._held[method] = (now, now + seconds)

    def wait(self, method: str, per_minute: int, channel: str, now: float) -> float:
        """0.0 for a call that is within the limits, which is counted; otherwise the seconds until one would be."""
        calls = _recent(self._calls[method], now)
        wait = calls[-per_minute] + MINUTE - now if len(calls) >= per_minute else 0.0
        if method == PACED:
            posted = _recent(self._channels[channel], now)
            wait = max(wait, _pace(posted, now))
        if wait <= 0:
            calls.append(now)
            if method == PACED:
                posted.append(now)
        return max(wait, 0.0)


def _recent(calls: deque[float], now: float) -> deque[float]:
    while calls and calls[0] <= now - MINUTE:
        calls.popleft()
    return calls


def _pace(posted: deque[float], now: float) -> float:
    """One a second, with a bucket that holds a burst."""
    missing = 0.0
    last = posted[0] if posted else now
    for time in posted:
        missing = max(0.0, missing - (time - last)) + 1
        last = time
    missing = max(0.0, missing - (now - last))
    return max(0.0, missing + 1 - BURST)
