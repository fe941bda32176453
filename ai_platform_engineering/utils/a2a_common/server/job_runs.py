"""The runs of this process: each is one job, which is one message to a task.

A job has the ids of its task and its message; the event log has everything else. The process claims the run in the log
first. Writes of an earlier claim then fail, so a process that was suspended cannot write into a run that another one
has taken over.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from a2a.types.a2a_pb2 import Role
from procrastinate import JobContext
from procrastinate.job_context import AbortReason
from procrastinate.jobs import Job

from ai_platform_engineering.compat.procrastinate import FencedJobManager
from ai_platform_engineering.events import Canceled
from ai_platform_engineering.identity.principal import ANONYMOUS
from ai_platform_engineering.storage.event_log.event_log import (
    Claim,
    Entry,
    EventLog,
    StoredRequest,
    SupersededError,
    TaskEndedError,
    UnknownTaskError,
)
from ai_platform_engineering.storage.event_log.task_fold import ends_task, suspends_task
from ai_platform_engineering.utils.a2a_common.server.recovery import MAX_TAKEOVERS, NO_PROGRESS, progress_of
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.server.work import Assignment, Executor
from ai_platform_engineering.utils.a2a_common.server.work_queue import INTERNAL_ERROR

logger = logging.getLogger(__name__)

_STOP_SECONDS: Final = 4.0
"""Time for runs to stop. A delegation cancels its remote task, which takes up to two seconds."""
_MAX_ACCEPTED: Final = 1000
_PARKED_UNTIL: Final = datetime(2200, 1, 1, tzinfo=UTC)

FIRST_MESSAGE: Final = 0
LATER_MESSAGE: Final = 1
"""Priorities of jobs. A later message answers a form, so it precedes the parked first messages of other tasks."""
_HANDED_OVER: Final = 2
"""Is added to the priority of a job with each hand-over, which is thereby counted, too."""


@dataclass(slots=True, eq=False)
class Run:
    """The execution of a job. `assignment` is None until the run is claimed."""

    task_id: str
    context_id: str
    assignment: Assignment | None = None
    work: asyncio.Task[None] | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """The job is complete, or back in the queue."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    resumable: bool = True
    canceled: bool = False
    handed_over: bool = False

    def cancel(self) -> None:
        """Stop the run because a person canceled the task."""
        self.canceled, self.handed_over = True, False
        self._stop()

    def hand_over(self) -> None:
        """Stop the run without an end, so that another process continues it. One that is not resumable ends."""
        self.handed_over = not self.canceled and (self.resumable or self.assignment is None)
        self._stop()

    def _stop(self) -> None:
        if self.assignment is not None:
            self.assignment.canceled, self.assignment.handed_over = self.canceled, self.handed_over
        if self.work is not None and not self.stopping.is_set():
            self.work.cancel()
        self.stopping.set()


class JobRuns:
    """Executes the jobs that the worker of this process fetches."""

    def __init__(self, jobs: FencedJobManager, log: EventLog, executor: Executor, endings: TaskEndings) -> None:
        self._jobs = jobs
        self._log = log
        self._executor = executor
        self._endings = endings
        self._runs: set[Run] = set()
        self._accepted: OrderedDict[tuple[str, str], Assignment] = OrderedDict()

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(tuple(self._runs))

    def accept(self, assignment: Assignment) -> None:
        """Remember what the log does not store of a message, above all the token of its caller.

        It is used if this process gets the job.
        """
        self._accepted[_key(assignment)] = assignment
        while len(self._accepted) > _MAX_ACCEPTED:
            self._accepted.popitem(last=False)

    async def execute(self, context: JobContext, task_id: str, context_id: str, message_id: str) -> None:
        """Execute a job. The worker cancels this call to abort the job; the job is completed all the same."""
        run = Run(task_id, context_id, resumable=self._executor.resumable)
        self._runs.add(run)
        job = asyncio.create_task(self._execute(run, context.job, message_id), name=f"job:{task_id}")
        try:
            while not job.done():
                try:
                    await asyncio.wait([job])
                except asyncio.CancelledError:
                    if context.abort_reason() == AbortReason.USER_REQUEST:
                        run.cancel()
                    else:
                        run.hand_over()
            job.result()
        finally:
            self._runs.discard(run)
            run.settled.set()

    async def _execute(self, run: Run, job: Job, message_id: str) -> None:
        if not self._jobs.accepting:
            run.hand_over()  # the job was fetched just before the server began to stop
        else:
            run.work = asyncio.create_task(self._work(run, job, message_id), name=f"work:{run.task_id}")
            stopping = asyncio.create_task(run.stopping.wait())
            await asyncio.wait([run.work, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            await asyncio.wait([run.work], timeout=_STOP_SECONDS)
        if run.canceled:
            await self._endings.end(run.task_id, Canceled())
            await self._jobs.wake(job.lock)
        elif run.handed_over and not _has_succeeded(run.work):
            logger.info("task %s is handed over to another process", run.task_id)
            await self._jobs.give_back(job, priority=job.priority + _HANDED_OVER)
        elif run.stopping.is_set() and not _has_succeeded(run.work):
            await self._endings.stop(run.task_id)
        elif run.work is not None:
            run.work.result()

    async def _work(self, run: Run, job: Job, message_id: str) -> None:
        turn, waits = 0, False
        with suppress(TaskEndedError, UnknownTaskError):
            if (accepted := self._accepted.get((run.task_id, message_id))) is not None and accepted.begins_task:
                claim = await self._log.claim_new(run.task_id)
                if claim is not None:
                    await self._run(run, job, claim, self._assignment(run, 1, accepted.request, ()))
                    return
            turn, request = await self._request(run, message_id)
            entries = await self._log.read(run.task_id)
            if not _is_done(entries, turn):
                if await self._is_blocked(run):
                    await self._park(run, job)
                    return
                claim = await self._log.claim(run.task_id, progress_of(entries))
                waits = await self._run(run, job, claim, self._assignment(run, turn, request, entries))
        if turn > 1 and not waits:
            # Other messages of the conversation may have waited for the answer.
            await self._jobs.wake(job.lock)

    async def _run(self, run: Run, job: Job, claim: Claim, assignment: Assignment) -> bool:
        """Execute a run that was claimed. True if the task waits for a person."""
        try:
            if claim.attempts - job.priority // _HANDED_OVER > MAX_TAKEOVERS:
                await self._endings.end(run.task_id, NO_PROGRESS, epoch=claim.epoch)
                return False
            run.assignment = assignment
            run.assignment.epoch = claim.epoch
            # A run may have begun although the log has no event of it yet.
            run.assignment.resumes = run.assignment.resumes or claim.attempts > 1
            if run.assignment.resumes and not run.resumable:
                await self._endings.stop(run.task_id)
                return False
            return await self._executor.execute(run.assignment)
        except SupersededError:
            logger.warning("task %s: another process has taken the run over, so it stops here", run.task_id)
        except (TaskEndedError, UnknownTaskError):
            logger.info("task %s was ended by another process", run.task_id)
        except Exception:
            logger.exception("task %s: the run failed without writing its end", run.task_id)
            await self._endings.end(run.task_id, INTERNAL_ERROR, epoch=claim.epoch)
        return False

    def _assignment(self, run: Run, turn: int, request: StoredRequest, entries: Sequence[Entry]) -> Assignment:
        accepted = self._accepted.pop((run.task_id, request.message.message_id), None)
        if accepted is not None:
            request = accepted.request
        questions = [entry.seq for entry in entries if suspends_task(entry.event)]
        begin = questions[turn - 2] if turn > 1 else 0
        return Assignment(
            run.task_id,
            run.context_id,
            # A second answer may have arrived during the run of the first.
            replace(request, after=begin),
            begins_task=not entries,
            auth_token=accepted.auth_token if accepted is not None else None,
            resumes=bool(entries) and entries[-1].seq > begin,
        )

    async def _request(self, run: Run, message_id: str) -> tuple[int, StoredRequest]:
        """A message to a task and its place among them, from 1."""
        last = await self._log.request(run.task_id)
        if last is None:
            raise UnknownTaskError(run.task_id)
        if last.after == 0 and last.message.message_id == message_id:
            return 1, last
        task = await self._log.task(run.task_id)
        sent = [message for message in task.history if message.role != Role.ROLE_AGENT] if task is not None else []
        for turn, message in enumerate(sent, 1):
            if message.message_id == message_id:
                # The log has the caller of the last message only.
                is_last = message_id == last.message.message_id
                return turn, last if is_last else StoredRequest(message, ANONYMOUS, 0)
        raise UnknownTaskError(run.task_id)

    async def _is_blocked(self, run: Run) -> bool:
        """Whether another task of the conversation waits for a person."""
        return await self._log.waiting(run.context_id) not in (None, run.task_id)

    async def _park(self, run: Run, job: Job) -> None:
        """Return a job to the queue, with its place, until the conversation is released."""
        await self._jobs.give_back(job, _PARKED_UNTIL)
        # The conversation may have been released before the job was parked.
        if not await self._is_blocked(run):
            await self._jobs.wake(job.lock)


def _key(assignment: Assignment) -> tuple[str, str]:
    return assignment.task_id, assignment.request.message.message_id


def _has_succeeded(work: asyncio.Task[None] | None) -> bool:
    return work is not None and work.done() and not work.cancelled() and work.exception() is None


def _is_done(entries: Sequence[Entry], turn: int) -> bool:
    """Whether the run of message number `turn` is over: each run ends with one question or with the end of the task."""
    return sum(suspends_task(entry.event) for entry in entries) >= turn or any(
        ends_task(entry.event) for entry in entries[-1:]
    )
