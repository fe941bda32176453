"""The work queue: the messages of one conversation are worked on one at a time, in order of arrival.

A task that waits for a person keeps its conversation: messages to other tasks wait until it is answered or ended. A
waiting message is an entry of a list, and a conversation without work takes no memory.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from ai_platform_engineering.events import Canceled, Failed
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.server.recovery import take_over
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.server.work import Assignment, Executor

logger = logging.getLogger(__name__)

_STOP_SECONDS: Final = 4.0
"""Time for runs to stop. A delegation cancels its remote task, which takes up to two seconds."""

INTERNAL_ERROR = Failed(code="internal_error", message="An internal error ended the work. The server's log says why.")


@dataclass(slots=True)
class _Conversation:
    pending: list[Assignment] = field(default_factory=list)
    running: Assignment | None = None
    run: asyncio.Task[None] | None = None
    waiting_task: str | None = None
    """The task that waits for a person."""
    pauses: int = 0
    """While this is above 0, no run is started."""

    def take_next(self) -> Assignment | None:
        """The next assignment that may run, removed from `pending`."""
        for place, assignment in enumerate(self.pending):
            if self.waiting_task in (None, assignment.task_id):
                return self.pending.pop(place)
        return None

    def take_task(self, task_id: str) -> list[Assignment]:
        """The pending assignments of a task, removed."""
        taken = [assignment for assignment in self.pending if assignment.task_id == task_id]
        self.pending = [assignment for assignment in self.pending if assignment.task_id != task_id]
        return taken


class WorkQueue:
    """Runs the executor. Every assignment leads to an end in the log, also when the executor raises."""

    every = None

    def __init__(self, executor: Executor, log: EventLog, endings: TaskEndings) -> None:
        self._executor = executor
        self._log = log
        self._endings = endings
        self._conversations: dict[str, _Conversation] = {}
        self.stopping = False

    def __len__(self) -> int:
        running = {c.running.task_id for c in self._conversations.values() if c.running is not None}
        return len(running | {assignment.task_id for assignment in self._pending()})

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        yield

    async def recover(self) -> None:
        for task_id, context_id in await self._log.unfinished():
            assignment = await take_over(self._log, self._endings, task_id, context_id)
            if assignment is not None:
                conversation = self._conversations.setdefault(context_id, _Conversation())
                conversation.waiting_task = await self._log.waiting(context_id)
                await self.put(assignment)

    @property
    def running(self) -> int:
        return sum(conversation.running is not None for conversation in self._conversations.values())

    @property
    def queued(self) -> int:
        return sum(len(conversation.pending) for conversation in self._conversations.values())

    async def put(self, assignment: Assignment) -> None:
        conversation = self._conversations.setdefault(assignment.context_id, _Conversation())
        conversation.pending.append(assignment)
        self._start_next(assignment.context_id, conversation)

    async def cancel(self, task_id: str, context_id: str, auth_token: str | None = None) -> None:
        if (conversation := self._conversations.get(context_id)) is not None:
            conversation.take_task(task_id)
            if conversation.running is not None and conversation.running.task_id == task_id:
                conversation.running.canceled = True
                await _stopped(conversation.run)
        try:
            await self._executor.cancel(task_id, auth_token)
        finally:
            await self._endings.end(task_id, Canceled())
            await self.release(context_id, task_id)

    async def release(self, context_id: str, task_id: str | None = None) -> None:
        conversation = self._conversations.get(context_id)
        if conversation is not None and task_id in (None, conversation.waiting_task):
            conversation.waiting_task = None
            self._start_next(context_id, conversation)

    @asynccontextmanager
    async def paused(self, context_id: str) -> AsyncIterator[None]:
        conversation = self._conversations.setdefault(context_id, _Conversation())
        conversation.pauses += 1
        try:
            yield
        finally:
            conversation.pauses -= 1
            self._start_next(context_id, conversation)

    async def join(self, context_id: str) -> None:
        conversation = self._conversations.get(context_id)
        if conversation is not None and conversation.run is not None:
            await asyncio.wait([conversation.run])

    async def aclose(self, grace: float = 0.0) -> None:
        # Every task gets its end, or a status that says that it continues, so no subscriber waits.
        self.stopping = True
        pending = {assignment.task_id for assignment in self._pending()}
        for conversation in self._conversations.values():
            conversation.pending.clear()
        running = {c.running.task_id: c.run for c in self._conversations.values() if c.running and c.run}
        await asyncio.gather(*map(self._stop, pending - running.keys()))
        if running and grace:
            await asyncio.wait(running.values(), timeout=grace)
        for conversation in self._conversations.values():
            if conversation.running is not None:
                conversation.running.handed_over = self._executor.resumable
        await _stopped(*running.values(), timeout=_STOP_SECONDS)
        if not self._executor.resumable:
            await asyncio.gather(*map(self._endings.stop, running))

    async def _stop(self, task_id: str) -> None:
        """Stop a task without a run."""
        if self._executor.resumable:
            await self._endings.hand_over(task_id)
        else:
            await self._endings.stop(task_id)

    def _pending(self) -> Iterator[Assignment]:
        for conversation in self._conversations.values():
            yield from conversation.pending

    def _start_next(self, context_id: str, conversation: _Conversation) -> None:
        if conversation.pauses:
            return
        if conversation.running is None and (assignment := conversation.take_next()) is not None:
            conversation.running = assignment
            conversation.run = asyncio.create_task(
                self._work(assignment, conversation), name=f"work:{assignment.task_id}"
            )
            conversation.run.add_done_callback(lambda run: self._done(run, context_id, conversation))
        elif conversation.running is None and conversation.waiting_task is None and not conversation.pending:
            self._conversations.pop(context_id, None)

    async def _work(self, assignment: Assignment, conversation: _Conversation) -> None:
        waits = False
        try:
            if self.stopping:  # the message was accepted just before the server began to stop
                await self._stop(assignment.task_id)
            else:
                waits = await self._executor.execute(assignment)
        except Exception:
            logger.exception("task %s: the run failed without writing its end", assignment.task_id)
            await self._endings.end(assignment.task_id, INTERNAL_ERROR)
        finally:
            conversation.waiting_task = assignment.task_id if waits else None
            if not waits:
                # Later answers to a task that has ended have nothing to answer.
                conversation.take_task(assignment.task_id)

    def _done(self, run: asyncio.Task[None], context_id: str, conversation: _Conversation) -> None:
        if not run.cancelled() and (error := run.exception()):
            logger.error("%s: the end of the task could not be stored", run.get_name(), exc_info=error)
        conversation.running = conversation.run = None
        self._start_next(context_id, conversation)


async def _stopped(*runs: asyncio.Task[None] | None, timeout: float | None = None) -> None:
    """Cancel the runs and wait until they have stopped."""
    running = [run for run in runs if run is not None]
    for run in running:
        run.cancel()
    if running:
        await asyncio.wait(running, timeout=timeout)
