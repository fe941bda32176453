"""The work queue of several processes: each message is a job in Postgres, which one of the processes runs.

The lock of a job is its conversation, so the messages of a conversation are worked on one at a time, in order of
arrival. A task that waits for a person keeps its conversation: jobs of other tasks are parked until it is released.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from procrastinate import JobContext
from procrastinate.exceptions import NoResult
from procrastinate.jobs import Job, Status
from psycopg import AsyncConnection

from ai_platform_engineering.events import Canceled
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES
from ai_platform_engineering.utils.a2a_common.server.job_runs import FIRST_MESSAGE, LATER_MESSAGE, JobRuns
from ai_platform_engineering.utils.a2a_common.server.job_worker import JobWorker
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.server.work import Assignment, Executor
from ai_platform_engineering.utils.postgres_address import PostgresAddress

logger = logging.getLogger(__name__)

_RUN: Final = "run"
_HOLD: Final = "hold"
_FIRST_OF_ALL: Final = 1_000_000
_POLL_SECONDS: Final = 0.1
_CANCEL_SECONDS: Final = 10.0
"""Time for another process to stop a run that was canceled."""
_STOP_SECONDS: Final = 5.0
_QUEUEING_SECONDS: Final = 1.0
"""A message is queued well within this time after it is stored."""
_OPEN_JOBS: Final = (Status.TODO.value, Status.DOING.value)


class JobQueue:
    """Runs the executor in this process, for the messages that it gets. `server` is the name of the server."""

    def __init__(
        self,
        address: PostgresAddress,
        executor: Executor,
        log: EventLog,
        endings: TaskEndings,
        *,
        server: str,
        concurrency: int,
    ) -> None:
        self.stopping = False
        self._address = address
        self._executor = executor
        self._log = log
        self._endings = endings
        self._worker = JobWorker(address, server, concurrency)
        self._jobs = self._worker.jobs
        self._runs = JobRuns(self._jobs, log, executor, endings)
        self._worker.add(_RUN, self._runs.execute)
        self._worker.add(_HOLD, self._hold)
        self.every("recover", 60, self.recover)
        self.every("delete_old_jobs", 3600, self._delete_old_jobs)

    def __len__(self) -> int:
        return len(self._runs)

    def every(self, name: str, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do periodic work in one process at a time, about every `seconds`. Call this before the queue runs."""
        self._worker.add_periodic(name, _cron(seconds), work)

    @property
    def running(self) -> int:
        return len(self._runs)

    @property
    def queued(self) -> int:
        """The messages that wait in the database, for any process. Updated every few seconds."""
        return self._worker.queued

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Work on jobs until the context is left."""
        async with self._worker.running():
            try:
                yield
            finally:
                await self.aclose()

    async def put(self, assignment: Assignment) -> None:
        self._runs.accept(assignment)
        await self._defer(
            assignment.task_id,
            assignment.context_id,
            assignment.request.message.message_id,
            priority=FIRST_MESSAGE if assignment.begins_task else LATER_MESSAGE,
        )

    async def cancel(self, task_id: str, context_id: str, auth_token: str | None = None) -> None:
        here = [run for run in self._runs if run.task_id == task_id]
        for run in here:
            run.cancel()
        await asyncio.gather(*(run.settled.wait() for run in here))
        for job in await self._open_jobs(context_id):
            if job.task_kwargs.get("task_id") == task_id and job.id is not None:
                await self._jobs.cancel_job_by_id_async(job.id, abort=True, delete_job=True)
                if job.status == Status.DOING.value:
                    await self._stopped(job.id, task_id)
        try:
            await self._executor.cancel(task_id, auth_token)
        finally:
            await self._endings.end(task_id, Canceled())
            await self.release(context_id, task_id)

    async def release(self, context_id: str, task_id: str | None = None) -> None:
        await self._jobs.wake(self._lock(context_id))

    @asynccontextmanager
    async def paused(self, context_id: str) -> AsyncIterator[None]:
        lock = self._lock(context_id)
        # The lock is that of the connection, so it is free again if this process dies.
        async with await AsyncConnection.connect(self._address.conninfo, autocommit=True) as connection:
            await connection.execute("SELECT pg_advisory_lock(hashtextextended(%s, 0))", (lock,))
            await self._worker.defer(_HOLD, lock, priority=_FIRST_OF_ALL)
            yield

    async def join(self, context_id: str) -> None:
        while True:
            if all(job.status != Status.DOING.value for job in await self._open_jobs(context_id)):
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def recover(self) -> None:
        """Queue the messages that were stored but not queued, because their process died in between."""
        lost = await self._without_job()
        if lost:
            # A process that lives may be about to queue its message.
            await asyncio.sleep(_QUEUEING_SECONDS)
            lost = [task for task in await self._without_job() if task in lost]
        for task_id, context_id in lost:
            request = await self._log.request(task_id)
            if request is not None:
                logger.info("task %s is queued again", task_id)
                priority = LATER_MESSAGE if request.after else FIRST_MESSAGE
                await self._defer(task_id, context_id, request.message.message_id, priority=priority)

    async def aclose(self, grace: float = 0.0) -> None:
        self.stopping = True
        self._jobs.accepting = False
        runs = list(self._runs)
        settled = [asyncio.create_task(run.settled.wait()) for run in runs]
        if settled and grace:
            await asyncio.wait(settled, timeout=grace)
        for run in runs:
            if not run.settled.is_set():
                run.hand_over()
        if settled:
            await asyncio.wait(settled, timeout=_STOP_SECONDS)

    def _lock(self, context_id: str) -> str:
        # The column has an index, which does not take long values.
        return f"{self._worker.server}:{hashlib.sha256(context_id.encode()).hexdigest()}"

    async def _defer(self, task_id: str, context_id: str, message_id: str, *, priority: int) -> None:
        ids = {"task_id": task_id, "context_id": context_id, "message_id": message_id}
        once = hashlib.sha256(json.dumps(ids).encode()).hexdigest()
        await self._worker.defer(
            _RUN, self._lock(context_id), priority=priority, once=f"{self._worker.server}:{once}", **ids
        )

    async def _without_job(self) -> list[tuple[str, str]]:
        """The unfinished tasks that have no job, with their conversations, in order of arrival."""
        unfinished = await self._log.unfinished()
        jobs = await self._jobs.list_jobs_async(queue=self._worker.server, task=_RUN)
        queued = {job.task_kwargs.get("task_id") for job in jobs if job.status in _OPEN_JOBS}
        return [(task_id, context_id) for task_id, context_id in unfinished if task_id not in queued]

    async def _open_jobs(self, context_id: str) -> list[Job]:
        """The jobs of runs in a conversation, queued or executed."""
        jobs = await self._jobs.list_jobs_async(queue=self._worker.server, task=_RUN, lock=self._lock(context_id))
        return [job for job in jobs if job.status in _OPEN_JOBS]

    async def _stopped(self, job_id: int, task_id: str) -> None:
        """Wait until another process has stopped a run, for a limited time."""
        deadline = time.monotonic() + _CANCEL_SECONDS
        while time.monotonic() < deadline and await self._log.state(task_id) not in TERMINAL_STATES:
            try:
                if await self._jobs.get_job_status_async(job_id) != Status.DOING:
                    return
            except NoResult:
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _hold(self, context: JobContext) -> None:
        """Occupy a conversation for as long as a process has paused it."""
        try:
            async with await AsyncConnection.connect(self._address.conninfo, autocommit=True) as connection:
                await connection.execute("SELECT pg_advisory_lock_shared(hashtextextended(%s, 0))", (context.job.lock,))
        except asyncio.CancelledError:  # this server stops
            await self._jobs.give_back(context.job)
            raise

    async def _delete_old_jobs(self) -> None:
        """Delete jobs that ended in a way that kept them: they were canceled after their process had died."""
        await self._jobs.delete_old_jobs(
            1, self._worker.server, include_failed=True, include_cancelled=True, include_aborted=True
        )


def _cron(seconds: float) -> str:
    if seconds >= 3600:
        return "0 * * * *"
    return "* * * * *" if seconds >= 60 else f"* * * * * */{max(1, int(seconds))}"
