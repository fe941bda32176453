"""How often Slack may be asked: one budget for all threads, kept before Slack has to enforce it.

Who has to wait gets a turn, in the order of asking, and keeps it: nobody who comes later goes before.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Final, Protocol, Self

from ai_platform_engineering.integrations.slack_bot.clock import Clock

LIMITS: Final[Mapping[str, int]] = {
    "chat.startStream": 20,
    "chat.stopStream": 20,
    "chat.appendStream": 100,
    "chat.update": 50,
    "chat.delete": 50,
    "chat.postMessage": 300,
    "chat.postEphemeral": 100,
    "conversations.replies": 50,
    "assistant.threads.setStatus": 600,
    "assistant.threads.setSuggestedPrompts": 100,
    "files.getUploadURLExternal": 100,
    "files.completeUploadExternal": 100,
}
"""Calls a minute in a workspace. Of `chat.postMessage` Slack says only that there are several hundred."""
MINUTE: Final = 61.0
"""A minute as Slack counts it, and a second because not every call is equally long on its way."""
ORDINARY_SHARE: Final = 0.8
BURST: Final = 3
"""Messages that may be posted at once in a channel; after them, one a second."""
GRACE: Final = 5.0
"""Seconds after which a turn that is not taken goes to the next."""
_SOON: Final = 0.001


class Rate(Protocol):
    def earliest(self, share: float) -> float:
        """When the next call may be made, by those who may use that share of the budget."""

    def take(self, at: float) -> None:
        """A call is made."""

    def copy(self) -> Self: ...


@dataclass(slots=True)
class Window:
    """So many calls in any minute."""

    limit: int
    calls: list[float] = field(default_factory=list)

    def earliest(self, share: float) -> float:
        limit = max(1, int(self.limit * share))
        return self.calls[-limit] + MINUTE if len(self.calls) >= limit else 0.0

    def take(self, at: float) -> None:
        insort(self.calls, at)
        del self.calls[: -self.limit]

    def copy(self) -> Self:
        return type(self)(self.limit, self.calls.copy())

    def used(self, now: float) -> int:
        return sum(at > now - MINUTE for at in self.calls)


@dataclass(slots=True)
class Bucket:
    """A few calls at once, then one a second."""

    full_at: float = 0.0
    """When nothing that was taken is missing any more."""

    def earliest(self, share: float) -> float:
        return self.full_at - (BURST - 1)

    def take(self, at: float) -> None:
        self.full_at = max(self.full_at, at) + 1.0

    def copy(self) -> Self:
        return type(self)(self.full_at)


@dataclass(slots=True)
class Turn:
    """What somebody waits for. `promised` is when they were told to come back."""

    method: str
    channel: str
    urgent: bool
    order: int
    promised: float = 0.0


class Budget:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[str, Window] = {}
        self._channels: dict[str, Bucket] = {}
        self._held: dict[str, float] = {}
        self._turns: dict[str, Turn] = {}
        self._orders = count()

    def wait(self, method: str, channel: str, holder: str, *, urgent: bool = False) -> float:
        """0.0: go, and it is counted. Otherwise the seconds until this holder's turn, which is kept for it; a holder
        waits for one thing at a time. What is not urgent leaves a part of each budget alone."""
        now = self._clock.now()
        self._forget(now)
        turn = self._turns.get(holder)
        if turn is None or (turn.method, turn.channel) != (method, channel):
            turn = self._turns[holder] = Turn(method, channel, urgent, next(self._orders))
        turn.urgent = urgent
        at = self._time_of(turn, now)
        if at > now + _SOON:
            turn.promised = at
            return at - now
        del self._turns[holder]
        for rate in self._rates(turn):
            rate.take(now)
        return 0.0

    def hold(self, method: str, seconds: float) -> None:
        """Slack has said how long nobody may ask."""
        self._held[method] = max(self._held.get(method, 0.0), self._clock.now() + seconds)

    def pressure(self, method: str) -> float:
        """How much of the last minute's budget is used or spoken for, from 0 to 1."""
        now = self._clock.now()
        self._forget(now)
        if self._held.get(method, 0.0) > now:
            return 1.0
        window = self._window(method)
        return min(1.0, (window.used(now) + len(self._queue(method))) / window.limit)

    def _time_of(self, turn: Turn, now: float) -> float:
        """When it is that turn, if everybody before comes in time."""
        begin = max(now, self._held.get(turn.method, 0.0))
        rates: dict[int, Rate] = {}
        queue = self._queue(turn.method)
        for other in queue[: queue.index(turn) + 1]:
            at = self._reckoned(other, begin, rates)
        return at

    def _reckoned(self, turn: Turn, begin: float, rates: dict[int, Rate]) -> float:
        copies = [rates.setdefault(id(rate), rate.copy()) for rate in self._rates(turn)]
        share = 1.0 if turn.urgent else ORDINARY_SHARE
        at = max(begin, *(rate.earliest(share) for rate in copies))
        for rate in copies:
            rate.take(at)
        return at

    def _queue(self, method: str) -> list[Turn]:
        """Who waits for it, in order; what is urgent goes first."""
        turns = [turn for turn in self._turns.values() if turn.method == method]
        return sorted(turns, key=lambda turn: (not turn.urgent, turn.order))

    def _rates(self, turn: Turn) -> list[Rate]:
        rates: list[Rate] = [self._window(turn.method)]
        if turn.method == "chat.postMessage":
            rates.append(self._channels.setdefault(turn.channel, Bucket()))
        return rates

    def _window(self, method: str) -> Window:
        if method not in self._windows:
            self._windows[method] = Window(LIMITS[method])
        return self._windows[method]

    def _forget(self, now: float) -> None:
        lapsed = [holder for holder, turn in self._turns.items() if turn.promised + GRACE < now]
        for holder in lapsed:
            del self._turns[holder]
        for channel in [channel for channel, bucket in self._channels.items() if bucket.full_at < now]:
            del self._channels[channel]
