"""Which process runs a new job: the one that queues it, or another one, which fetches it a moment later.

A process sends the events of its own run to its caller from memory. It would read those of another process from the
database, so the process that accepted a message should run it, unless it has clearly more to do than another one. Each
process announces how many jobs it executes.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_OTHERS_SECONDS: Final = 0.01
_SECONDS_PER_RUN: Final = 0.002
_CLEARLY_MORE: Final = 4
_LOAD_SECONDS: Final = 3.0
"""A process that has not announced its load for so long does not count."""
_MAX_JOBS: Final = 1000


class JobOffers:
    """`running` is the number of jobs that this process executes."""

    def __init__(self, running: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._running = running
        self._clock = clock
        self._own: OrderedDict[int, None] = OrderedDict()
        self._notified: OrderedDict[int, None] = OrderedDict()
        self._loads: dict[str, tuple[int, float]] = {}

    def keeps_own(self) -> bool:
        """Whether this process should run the next job that it queues."""
        least = self._least_load()
        return least is None or self._running() <= least + _CLEARLY_MORE

    def queued(self, job_id: int) -> float:
        """The delay for a job that this process has queued."""
        if job_id not in self._notified:
            _add(self._own, job_id)
        return 0.0 if self.keeps_own() else self._delay()

    def notified(self, job_id: int) -> float | None:
        """The delay for a job of a notification; None if this process has queued it. A later notification of the same
        job says that its end has freed its lock."""
        if job_id in self._own:
            del self._own[job_id]
            return None
        _add(self._notified, job_id)
        return self._delay()

    def note_load(self, process: str, running: int) -> None:
        """Another process executes so many jobs."""
        self._loads[process] = running, self._clock()

    def _delay(self) -> float:
        """The process with the fewest jobs is the first to fetch."""
        return _OTHERS_SECONDS + _SECONDS_PER_RUN * self._running()

    def _least_load(self) -> int | None:
        """The fewest jobs that another process executes. None if there is no other."""
        since = self._clock() - _LOAD_SECONDS
        self._loads = {process: load for process, load in self._loads.items() if load[1] >= since}
        return min((running for running, _ in self._loads.values()), default=None)


def _add(jobs: OrderedDict[int, None], job_id: int) -> None:
    jobs[job_id] = None
    if len(jobs) > _MAX_JOBS:
        jobs.popitem(last=False)
