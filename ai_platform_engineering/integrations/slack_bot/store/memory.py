"""The store in memory: its content is lost when the process ends."""

from __future__ import annotations

from collections.abc import Iterable

from ai_platform_engineering.integrations.slack_bot.places import ThreadPlace
from ai_platform_engineering.integrations.slack_bot.store.values import EVENT_SECONDS, StoredRun, ThreadSession


class MemoryStore:
    def __init__(self) -> None:
        self._events: dict[str, float] = {}
        self._sessions: dict[ThreadPlace, ThreadSession] = {}
        self._runs: dict[str, StoredRun] = {}

    def first_time(self, event_id: str, now: float) -> bool:
        if event_id in self._events:
            return False
        self._events[event_id] = now
        return True

    def session(self, place: ThreadPlace) -> ThreadSession | None:
        return self._sessions.get(place)

    def put_session(self, session: ThreadSession) -> None:
        self._sessions[session.place] = session

    def put_run(self, run: StoredRun) -> None:
        self._runs[run.id] = run

    def run(self, run_id: str) -> StoredRun | None:
        return self._runs.get(run_id)

    def run_of_task(self, task_id: str) -> StoredRun | None:
        return _newest(run for run in self._runs.values() if run.task_id == task_id) if task_id else None

    def open_runs(self, place: ThreadPlace | None = None) -> list[StoredRun]:
        return _by_age(run for run in self._runs.values() if not run.done and place in (None, run.incoming.place))

    def latest_run(self, place: ThreadPlace) -> StoredRun | None:
        return _newest(run for run in self._runs.values() if run.incoming.place == place)

    def prune(self, now: float, max_age: float) -> bool:
        oldest = now - max_age
        self._events = {event: at for event, at in self._events.items() if at >= now - EVENT_SECONDS}
        self._runs = {key: run for key, run in self._runs.items() if not run.done or run.begun >= oldest}
        in_use = {run.incoming.place for run in self.open_runs()}
        self._sessions = {
            place: session
            for place, session in self._sessions.items()
            if session.last_used >= oldest or place in in_use
        }
        return False

    def close(self) -> None:
        pass


def _by_age(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """Oldest first; runs with the same start time in the order they were stored."""
    return sorted(runs, key=lambda run: run.begun)


def _newest(runs: Iterable[StoredRun]) -> StoredRun | None:
    return next(reversed(_by_age(runs)), None)
