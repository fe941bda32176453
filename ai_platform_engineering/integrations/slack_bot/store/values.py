"""What the bot must not forget: which thread is which conversation, what is undelivered, what was heard before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from ai_platform_engineering.integrations.slack_bot.places import Incoming, Place

EVENT_SECONDS: Final = 86_400.0
"""How long it is remembered that an event came. Slack gives up sending one again after about an hour."""


@dataclass(frozen=True, slots=True)
class Session:
    """A thread and the supervisor's conversation that goes on in it."""

    place: Place
    context_id: str
    last_used: float


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A message and all that is known of its answer.

    `id` is that of the A2A message, made from team, channel and ts: asked again after a restart, the supervisor knows
    it. `seen` is the number of the last event that `state` knows of; `state` is the reducer's, as JSON. A run is `done`
    when nothing is left to be delivered.
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
    """What is put here is kept when the call returns. Times are seconds since the epoch."""

    def first_time(self, event_id: str, now: float) -> bool:
        """Whether this event was never asked about before; Slack sends some twice. The next asking is told no."""

    def session(self, place: Place) -> Session | None:
        """The conversation in that thread, if the bot is in it."""

    def put_session(self, session: Session) -> None:
        """Keep it, instead of what was kept for the same thread."""

    def put_run(self, run: KeptRun) -> None:
        """Keep it, instead of what was kept under the same id."""

    def run(self, run_id: str) -> KeptRun | None:
        """The run with that id."""

    def run_of_task(self, task_id: str) -> KeptRun | None:
        """The newest run of that task."""

    def open_runs(self, place: Place | None = None) -> list[KeptRun]:
        """Those that are not done, in that thread or everywhere, oldest first."""

    def latest_run(self, place: Place) -> KeptRun | None:
        """The newest run in that thread, done or not."""

    def prune(self, now: float, max_age: float) -> bool:
        """Forget threads and runs that are older than `max_age` seconds, but no run that is not done, nor its thread;
        and events after `EVENT_SECONDS`. True where there is more of it: nothing else is done while this goes on, so
        that it takes only so many at once."""

    def close(self) -> None:
        """Let go of the file. Nothing may be asked afterwards."""
