"""Client-side rate limiting: one budget for all threads, so that Slack's own rate limits are not hit.

A caller that has to wait gets a reservation. Reservations are served in order, urgent ones first.
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
"""Calls per minute in a workspace. For `chat.postMessage`, Slack documents only "several hundred"."""
MINUTE: Final = 61.0
"""A minute, and a second for the varying latency of calls."""
ORDINARY_SHARE: Final = 0.8
"""The share of each budget for calls that are not urgent."""
BURST: Final = 3
"""Messages that may be posted at once in a channel; after them, one per second."""
GRACE: Final = 5.0
"""Seconds after which an unused reservation expires."""
_TOLERANCE: Final = 0.001


class Rate(Protocol):
    def earliest(self, share: float) -> float:
        """The earliest time of the next call, within that share of the budget."""

    def take(self, at: float) -> None:
        """Count a call."""

    def copy(self) -> Self: ...


@dataclass(slots=True)
class Window:
    """At most `limit` calls in any minute."""

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
    """A token bucket: `BURST` calls at once, then one per second."""

    full_at: float = 0.0
    """When the bucket is full again."""

    def earliest(self, share: float) -> float:
        return self.full_at - (BURST - 1)

    def take(self, at: float) -> None:
        self.full_at = max(self.full_at, at) + 1.0

    def copy(self) -> Self:
        return type(self)(self.full_at)


@dataclass(slots=True)
class Reservation:
    """A caller's place in the queue of a method. `promised` is the time that was returned to the caller."""

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
        self._blocked_until: dict[str, float] = {}
        self._reservations: dict[str, Reservation] = {}
        self._order = count()

    def wait(self, method: str, channel: str, holder: str, *, urgent: bool = False) -> float:
        """Returns 0.0 and counts the call if it may be made now. Otherwise reserves it for `holder`, and returns the
        seconds to wait. A holder has one reservation at a time. Calls that are not urgent may use `ORDINARY_SHARE` of
        each budget only."""
        now = self._clock.now()
        self._expire(now)
        reservation = self._reservations.get(holder)
        if reservation is None or (reservation.method, reservation.channel) != (method, channel):
            reservation = self._reservations[holder] = Reservation(method, channel, urgent, next(self._order))
        reservation.urgent = urgent
        at = self._time_of(reservation, now)
        if at > now + _TOLERANCE:
            reservation.promised = at
            return at - now
        del self._reservations[holder]
        for rate in self._rates(reservation):
            rate.take(now)
        return 0.0

    def hold(self, method: str, seconds: float) -> None:
        """Block a method for the time that Slack has requested."""
        self._blocked_until[method] = max(self._blocked_until.get(method, 0.0), self._clock.now() + seconds)

    def pressure(self, method: str) -> float:
        """The share of the last minute's budget that is used or reserved, from 0 to 1."""
        now = self._clock.now()
        self._expire(now)
        if self._blocked_until.get(method, 0.0) > now:
            return 1.0
        window = self._window(method)
        return min(1.0, (window.used(now) + len(self._queue(method))) / window.limit)

    def _time_of(self, reservation: Reservation, now: float) -> float:
        """The time of a reservation, if all earlier ones are used in time."""
        begin = max(now, self._blocked_until.get(reservation.method, 0.0))
        rates: dict[int, Rate] = {}
        queue = self._queue(reservation.method)
        for other in queue[: queue.index(reservation) + 1]:
            at = self._simulate(other, begin, rates)
        return at

    def _simulate(self, reservation: Reservation, begin: float, rates: dict[int, Rate]) -> float:
        copies = [rates.setdefault(id(rate), rate.copy()) for rate in self._rates(reservation)]
        share = 1.0 if reservation.urgent else ORDINARY_SHARE
        at = max(begin, *(rate.earliest(share) for rate in copies))
        for rate in copies:
            rate.take(at)
        return at

    def _queue(self, method: str) -> list[Reservation]:
        """The reservations of a method in order, urgent ones first."""
        reservations = [reservation for reservation in self._reservations.values() if reservation.method == method]
        return sorted(reservations, key=lambda reservation: (not reservation.urgent, reservation.order))

    def _rates(self, reservation: Reservation) -> list[Rate]:
        rates: list[Rate] = [self._window(reservation.method)]
        if reservation.method == "chat.postMessage":
            rates.append(self._channels.setdefault(reservation.channel, Bucket()))
        return rates

    def _window(self, method: str) -> Window:
        if method not in self._windows:
            self._windows[method] = Window(LIMITS[method])
        return self._windows[method]

    def _expire(self, now: float) -> None:
        expired = [holder for holder, reservation in self._reservations.items() if reservation.promised + GRACE < now]
        for holder in expired:
            del self._reservations[holder]
        for channel in [channel for channel, bucket in self._channels.items() if bucket.full_at < now]:
            del self._channels[channel]
