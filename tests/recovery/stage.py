"""Conversations with real processes, one after the other, in which processes are killed at chosen frames."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.recovery.checks import Reference, check_conversation
from tests.recovery.client import FollowedTask, Frame, TaskClient, Watch, no_watch
from tests.recovery.model_server import ModelServer, model_server
from tests.recovery.scenario import ENVIRON, Release, play

Disrupt = Callable[[], Awaitable[None]]
"""Kills a process, and starts it again where nothing else takes over."""


@dataclass
class Conversation:
    """The first turn of a conversation, and the client for the next ones."""

    release: Release
    client: TaskClient
    task: FollowedTask


@dataclass
class Stage:
    """All conversations use one data directory, so that a process that was started again serves the next one."""

    http: httpx.AsyncClient
    model: ModelServer
    data_dir: Path
    url: str = ""
    reference: Reference | None = None

    def environ(self, name: str = "supervisor") -> dict[str, str]:
        """The settings of the process with this name."""
        return {"DATA_DIR": str(self.data_dir), **ENVIRON, **self.model.environ(name)}

    async def ask(self, watch: Watch = no_watch, release: Release | None = None, **metadata: Any) -> Conversation:
        release = release or Release()
        client = TaskClient(self.http, self.url, metadata=metadata)
        return Conversation(release, client, await client.ask(release.question, watch))

    async def check(self, conversation: Conversation) -> None:
        """The first conversation that is checked is the reference of the others."""
        release = conversation.release
        await conversation.client.ask(release.follow_up)
        found = check_conversation(release, conversation.task, self.model, self.data_dir, self.reference)
        self.reference = self.reference or found


@asynccontextmanager
async def staged(data_dir: Path) -> AsyncIterator[Stage]:
    # Every request has a connection of its own, so that a proxy may give each to another server.
    limits = httpx.Limits(max_keepalive_connections=0)
    async with model_server(play) as model, httpx.AsyncClient(timeout=60, limits=limits) as http:
        yield Stage(http, model, data_dir)


@dataclass
class Kill:
    """Disrupts once, when the frames of the run so far are those that it waits for."""

    is_due: Callable[[Sequence[Frame]], bool]
    disrupt: Disrupt
    seen: list[Frame] = field(default_factory=list)
    done: bool = False

    async def __call__(self, frame: Frame) -> bool:
        if self.done:
            return False
        self.seen.append(frame)
        self.done = self.is_due(self.seen)
        if self.done:
            await self.disrupt()
        return self.done

    @property
    def place(self) -> str:
        return f"disrupted at frame {len(self.seen) - 1}, after: {', '.join(map(describe, self.seen[-3:]))}"


@dataclass
class KillAtEach:
    """Disrupts at each of these frames in turn, all in one run. A frame is described as by `describe`."""

    points: list[str]
    disrupt: Disrupt

    async def __call__(self, frame: Frame) -> bool:
        if not self.points or self.points[0] != describe(frame):
            return False
        self.points.pop(0)
        await self.disrupt()
        return True


def at_frame(place: int) -> Callable[[Sequence[Frame]], bool]:
    """At the frame with this place, from 0."""
    return lambda seen: len(seen) > place


def after(*points: str) -> Callable[[Sequence[Frame]], bool]:
    """At the last of these frames, each after the one before it."""

    def is_due(seen: Sequence[Frame]) -> bool:
        remaining = iter(map(describe, seen))
        return all(point in remaining for point in points)

    return is_due


def describe(frame: Frame) -> str:
    """For example "tool_started add_note", "text_delta jira" or "answer accepted"."""
    return f"{frame.kind} {frame.tool or frame.agent}".removesuffix(" supervisor").strip()


async def check_killed_everywhere(stage: Stage, disrupt: Disrupt, first: int, step: int) -> int:
    """Conversations that are disrupted after the frames `first`, `first + step` ... to the end; how many there were."""
    await stage.check(await stage.ask())
    place = first
    while await _check_killed(stage, Kill(at_frame(place), disrupt)):
        place += step
    return (place - first) // step


async def _check_killed(stage: Stage, kill: Kill) -> bool:
    """A conversation that is disrupted. False if it was over before."""
    with noted(kill):
        await stage.check(await stage.ask(kill))
    return kill.done


@contextmanager
def noted(kill: Kill) -> Iterator[None]:
    """An error says where the disruption was."""
    try:
        yield
    except BaseException as error:
        error.add_note(kill.place)
        raise
