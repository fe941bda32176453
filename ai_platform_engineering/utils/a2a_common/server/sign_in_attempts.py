"""Slows down guesses of the key: after some failed sign-ins, an address must wait before the next one."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.utils.connection_limits import client_network

FREE_ATTEMPTS: Final = 5
MAX_PAUSE_SECONDS: Final = 60.0
MAX_ADDRESSES: Final = 10_000
_FORGOTTEN_AFTER: Final = 15 * 60.0


@dataclass(slots=True)
class _Failures:
    count: int
    last: float


class SignInAttempts:
    """Counts failures per address, so that one address cannot lock out another. Each process counts for itself."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def begin(self, address: str) -> float:
        """The seconds that the address must wait; 0 if it may try now.

        The attempt counts as failed until `succeeded`, so that attempts in parallel do not escape the limit.
        """
        address, now = client_network(address), self._clock()
        failures = self._failures.get(address)
        if failures is None or now - failures.last > _FORGOTTEN_AFTER:
            failures = _Failures(0, now)
        pause = failures.last + _pause(failures.count) - now
        if pause > 0:
            return pause
        self._failures[address] = _Failures(failures.count + 1, now)
        self._failures.move_to_end(address)
        if len(self._failures) > MAX_ADDRESSES:
            self._failures.popitem(last=False)
        return 0.0

    def succeeded(self, address: str) -> None:
        self._failures.pop(client_network(address), None)


def _pause(failures: int) -> float:
    """1, 2, 4 ... seconds after the free attempts."""
    return 0.0 if failures < FREE_ATTEMPTS else min(MAX_PAUSE_SECONDS, 2.0 ** min(failures - FREE_ATTEMPTS, 16))
