"""What a work queue does: runs assignments with an executor.

`work_queue.py` does it in one process, `job_queue.py` in several that share a database.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from ai_platform_engineering.storage.event_log.event_log import StoredRequest

Every = Callable[[str, float, Callable[[], Awaitable[None]]], None]
"""Plans periodic work: its name, the interval in seconds, and the work."""


@dataclass(slots=True, eq=False)
class Assignment:
    """A message to a task, to be worked on."""

    task_id: str
    context_id: str
    request: StoredRequest
    begins_task: bool = False
    """It is the first message, so the task has no events yet."""
    auth_token: str | None = field(default=None, repr=False)
    """The caller's token. It is not stored, so a resumed run has none."""
    resumes: bool = False
    """Another process, or an earlier start of this one, has begun the run."""
    epoch: int | None = None
    """Of the claim, if several processes may write to the log."""
    canceled: bool = False
    """A person canceled the task."""
    handed_over: bool = False
    """The server stops, and the run continues on another one or when this one is back."""


class Executor(Protocol):
    @property
    def resumable(self) -> bool:
        """Whether a run continues after the end of its process, because its events and checkpoints are stored."""

    async def execute(self, assignment: Assignment) -> bool:
        """Run an assignment and write all its events, the end of the run last. True if the task waits for a person.

        A run that is cancelled writes its end, too, before it raises `CancelledError`, unless it is handed over. A run
        that another process has claimed writes nothing more.
        """

    async def cancel(self, task_id: str, auth_token: str | None = None) -> None:
        """End a task that has no run: it waits for a person, or for its turn."""


class Work(Protocol):
    """Runs assignments: those of one conversation one at a time, in order of arrival."""

    stopping: bool

    @property
    def every(self) -> Every | None:
        """Plans work that one of the processes does, before the queue runs. None if there is only one process."""

    def __len__(self) -> int:
        """The number of tasks that run or wait for their turn in this process."""

    @property
    def running(self) -> int:
        """The number of runs in progress in this process."""

    @property
    def queued(self) -> int:
        """The number of messages that wait for their turn in this process."""

    def opened(self) -> AbstractAsyncContextManager[None]:
        """The queue works inside this context."""

    async def put(self, assignment: Assignment) -> None: ...

    async def cancel(self, task_id: str, context_id: str, auth_token: str | None = None) -> None:
        """Stop the run of a task and drop its pending messages, then end the task if it has not ended."""

    async def release(self, context_id: str, task_id: str | None = None) -> None:
        """Let a conversation go on after `task_id`, or any task, that waited in it was ended."""

    def paused(self, context_id: str) -> AbstractAsyncContextManager[None]:
        """Start no run in a conversation meanwhile. A run that has started continues."""

    async def recover(self) -> None:
        """Continue the runs that the last process did not finish. Only for resumable runs."""

    async def join(self, context_id: str) -> None:
        """Wait for the run of a conversation. It stores its checkpoint after the end of the task."""

    async def aclose(self, grace: float = 0.0) -> None:
        """Stop all work; runs have `grace` seconds to finish. A second call, with less time, shortens the first."""
