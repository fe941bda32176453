"""The values that listeners and the bot exchange: users, threads, incoming messages, the outcome of a stop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StopOutcome = Literal["stopping", "already_over", "not_stopped"]
"""The result of a request to stop a run. `not_stopped`: the supervisor did not confirm it, and the run continues."""


@dataclass(frozen=True, slots=True)
class SlackUser:
    """A member of a workspace, a person or another bot. Slack supports streams to people only."""

    team: str
    id: str
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class ThreadPlace:
    """A Slack thread, identified by its first message. Each thread is one conversation with the supervisor."""

    team: str
    channel: str
    thread_ts: str

    @property
    def key(self) -> str:
        return f"{self.team}/{self.channel}/{self.thread_ts}"


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message for the supervisor. A `quiet` run shows nothing unless it has an answer worth showing.
    `instructions` are the channel's own, for the supervisor."""

    place: ThreadPlace
    ts: str
    text: str
    person: SlackUser
    quiet: bool = False
    instructions: str = ""
