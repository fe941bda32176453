"""The stored values and the store's interface: conversations of threads, runs, ids of received events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from ai_platform_engineering.integrations.slack_bot.places import Incoming, ThreadPlace

EVENT_SECONDS: Final = 86_400.0
"""How long the id of an event is stored. Slack stops retrying an event after about an hour."""


@dataclass(frozen=True, slots=True)
class ThreadSession:
    """A thread and its conversation with the supervisor."""

    place: ThreadPlace
    context_id: str
    last_used: float


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A message and the state of its answer.

    `id` is the id of the A2A message, built from team, channel and ts, so a resend after a restart is idempotent.
    `seen` is the number of the last event in `state`, which is the reducer's state as JSON. A run is `done` when
    everything was delivered.
    """

    id: str
    incoming: Incoming
    context_id: str
    task_id: str = ""
    trace_id: str = ""
    seen: int = 0
    state: str = ""
    done: bool = False
    begun: float = 0.0


class BotStore(Protocol):
    """Writes are durable when the call returns. Times are seconds since the epoch."""

    def first_time(self, event_id: str, now: float) -> bool:
        """Record an event. False if it was recorded before: Slack sends some events twice."""

    def session(self, place: ThreadPlace) -> ThreadSession | None:
        """The session of that thread, if the bot has one."""

    def put_session(self, session: ThreadSession) -> None:
        """Store a session, replacing that of the same thread."""

    def put_run(self, run: StoredRun) -> None:
        """Store a run, replacing the one with the same id."""

    def run(self, run_id: str) -> StoredRun | None:
        """The run with that id, if it is stored."""

    def run_of_task(self, task_id: str) -> StoredRun | None:
        """The newest run of that task."""

    def open_runs(self, place: ThreadPlace | None = None) -> list[StoredRun]:
        """The runs that are not done, in that thread or in all, oldest first."""

    def latest_run(self, place: ThreadPlace) -> StoredRun | None:
        """The newest run in that thread, done or not."""

    def prune(self, now: float, max_age: float) -> bool:
        """Delete done runs and unused sessions older than `max_age` seconds, and events after `EVENT_SECONDS`.
        Open runs and their sessions stay. The call blocks, so it deletes a limited batch; True if there may be more."""

    def close(self) -> None:
        """Release the file or the database. No other call may follow."""


@runtime_checkable
class SharedBotStore(BotStore, Protocol):
    """A store for bots on several machines. One bot is active; the others wait until it is gone."""

    place: str
    """The store in a sentence, without credentials."""

    def activate(self) -> bool:
        """Become the active bot. False if another one is."""

    def check(self) -> None:
        """Check that this bot is still the active one. If it is not, the process ends."""
