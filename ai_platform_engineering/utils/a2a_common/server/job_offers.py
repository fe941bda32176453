"""When this process fetches a new job: at once if it queued the job, a moment later if another process did.

A process sends the events of its own run to its caller from memory. It would read those of another process from the
database, so the process that accepted a message should run it, unless it has clearly more to do than another one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

_OTHERS_SECONDS: Final = 0.01
_SECONDS_PER_RUN: Final = 0.002
_RUNS_WITHOUT_DELAY: Final = 4
_MAX_JOBS: Final = 1000


class JobOffers:
    """`running` is the number of jobs that this process executes."""

    def __init__(self, running: Callable[[], int]) -> None:
        self._running = running
        self._own: OrderedDict[int, None] = OrderedDict()
        self._notified: OrderedDict[int, None] = OrderedDict()

    def queued(self, job_id: int) -> float:
        """The delay for a job that this process has queued."""
        if job_id not in self._notified:
            _add(self._own, job_id)
        return _SECONDS_PER_RUN * max(0, self._running() - _RUNS_WITHOUT_DELAY)

    def notified(self, job_id: int) -> float | None:
        """The delay for a job of a notification; None if this process has queued it. A later notification of the same
        job says that its end has freed its lock."""
        if job_id in self._own:
            del self._own[job_id]
            return None
        _add(self._notified, job_id)
        return _OTHERS_SECONDS + _SECONDS_PER_RUN * self._running()


def _add(jobs: OrderedDict[int, None], job_id: int) -> None:
    jobs[job_id] = None
    if len(jobs) > _MAX_JOBS:
        jobs.popitem(last=False)
