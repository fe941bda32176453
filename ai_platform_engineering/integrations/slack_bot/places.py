"""Who says what where in Slack."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in a workspace. Another bot is one, too, but Slack streams to people only."""

    team: str
    id: str
    is_bot: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A thread: the conversation that is kept apart from all others. A thread is named by its first message."""

    team: str
    channel: str
    thread_ts: str

    @property
    def key(self) -> str:
        return f"{self.team}/{self.channel}/{self.thread_ts}"


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message for the supervisor. `quiet`: nothing is shown unless there is an answer worth showing.
    `instructions` are the channel's own, for the supervisor."""

    place: Place
    ts: str
    text: str
    person: Person
    quiet: bool = False
    instructions: str = ""
