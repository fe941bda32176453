"""The store that forgets everything when the process ends."""

from __future__ import annotations

from collections.abc import Iterable

from ai_platform_engineering.integrations.slack_bot.places import Place
from ai_platform_engineering.integrations.slack_bot.store.values import EVENT_SECONDS, KeptRun, Session


class MemoryStore:
    def __init__(self) -> None:
        self._heard: dict[str, float] = {}
        self._sessions: dict[Place, Session] = {}
        self._runs: dict[str, KeptRun] = {}

    def first_time(self, event_id: str, now: float) -> bool:
        if event_id in self._heard:
            return False
        self._heard[event_id] = now
        return True

    def session(self, place: Place) -> Session | None:
        return self._sessions.get(place)

    def put_session(self, session: Session) -> None:
        self._sessions[session.place] = session

    def put_run(self, run: KeptRun) -> None:
        self._runs[run.id] = run

    def run(self, run_id: str) -> KeptRun | None:
        return self._runs.get(run_id)

    def run_of_task(self, task_id: str) -> KeptRun | None:
        return _newest(run for run in self._runs.values() if run.task_id == task_id) if task_id else None

    def open_runs(self, place: Place | None = None) -> list[KeptRun]:
        return _by_age(run for run in self._runs.values() if not run.done and place in (None, run.incoming.place))

    def latest_run(self, place: Place) -> KeptRun | None:
        return _newest(run for run in self._runs.values() if run.incoming.place == place)

    def prune(self, now: float, max_age: float) -> bool:
        oldest = now - max_age
        self._heard = {event: at for event, at in self._heard.items() if at >= now - EVENT_SECONDS}
        self._runs = {key: run for key, run in self._runs.items() if not run.done or run.begun >= oldest}
        busy = {run.incoming.place for run in self.open_runs()}
        self._sessions = {
            place: session for place, session in self._sessions.items() if session.last_used >= oldest or place in busy
        }
        return False

    def close(self) -> None:
        pass


def _by_age(runs: Iterable[KeptRun]) -> list[KeptRun]:
    """Oldest first; of those that began at the same time, the one first put."""
    return sorted(runs, key=lambda run: run.begun)


def _newest(runs: Iterable[KeptRun]) -> KeptRun | None:
    return next(reversed(_by_age(runs)), None)
