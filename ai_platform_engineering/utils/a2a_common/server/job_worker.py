"""The worker of the job queue in this process: runs jobs from Postgres and takes over those of dead processes.

Procrastinate does the work: it stores jobs, gives each to one worker, and runs at most one job per lock. This module
adds what a worker inside a server needs. It is restarted when it stops, it finds the jobs of dead workers within
seconds, and it stops without losing its heartbeat while jobs finish.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from procrastinate import App, JobContext, RetryStrategy
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import DeleteJobCondition, Job
from procrastinate.tasks import Task

from ai_platform_engineering.compat.procrastinate import FencedJobManager, ReconnectingConnector
from ai_platform_engineering.storage.postgres.async_connections import checked_pool
from ai_platform_engineering.storage.postgres.job_schema import JOB_SCHEMA, use_job_schema
from ai_platform_engineering.utils.a2a_common.server.job_offers import JobOffers
from ai_platform_engineering.utils.background_tasks import stop_tasks
from ai_platform_engineering.utils.postgres_address import PostgresAddress

logger = logging.getLogger(__name__)

_HEARTBEAT_SECONDS: Final = 1.0
STALLED_SECONDS: Final = 3.0
"""A worker without a heartbeat for so long is taken for dead."""
_SWEEP_SECONDS: Final = 0.5
_ROUNDS: Final = 10
"""Sweeps between two looks at all jobs."""
_PRUNE_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 2.0
"""Notifications start jobs. The poll is for those that were lost with a connection."""
_RESTART_SECONDS: Final = 0.5
_CONNECTIONS: Final = 4
_CANCEL_SECONDS: Final = 10.0
"""A worker that is cancelled once more does not wait for its jobs, which end within this time."""

# A job raises only when the database or the event log fails.
_RETRY: Final = RetryStrategy(linear_wait=1, retry_exceptions=[Exception])


class JobWorker:
    """`server` is the queue, so that several servers can share a database."""

    def __init__(self, address: PostgresAddress, server: str, concurrency: int) -> None:
        self.server = server
        self._address = address
        self._concurrency = concurrency
        connector = ReconnectingConnector(
            conninfo=address.conninfo,
            min_size=1,
            max_size=_CONNECTIONS,
            configure=use_job_schema,
            pool_factory=checked_pool,
        )
        self._executing: set[tuple[int, int]] = set()
        self._offers = JobOffers(lambda: self._load)
        self.jobs = FencedJobManager(connector, self._offers.notified, self._offers.note_load)
        self._app = App(connector=connector)
        self._app.job_manager = self.jobs
        self._tasks: dict[str, Task[Any, Any, Any]] = {}
        self.queued = 0
        """The number of jobs that wait, some seconds ago."""

    @property
    def _load(self) -> int:
        return len(self._executing) + self.jobs.started

    def add(self, name: str, work: Callable[..., Awaitable[None]]) -> None:
        """Define a kind of job. `work` gets the context of the job, then its arguments."""
        define = self._app.task(name=name, queue=self.server, pass_context=True, retry=_RETRY)
        self._tasks[name] = define(self._registered(work))

    def add_periodic(self, name: str, cron: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` at the times of `cron`, in one process at a time."""

        async def execute(_context: JobContext, timestamp: int) -> None:
            await work()

        lock = f"{self.server}/{name}"
        define = self._app.task(name=name, queue=self.server, lock=lock, queueing_lock=lock, pass_context=True)
        self._app.periodic(cron=cron, periodic_id=self.server)(define(self._registered(execute)))

    async def defer(
        self, name: str, lock: str, *, priority: int = 0, once: str | None = None, **arguments: str
    ) -> None:
        """Queue a job, unless a job with the same `once` is queued already."""
        deferrer = self._tasks[name].configure(lock=lock, priority=priority, queueing_lock=once)
        can_start = self._load < self._concurrency and self._offers.keeps_own()
        if can_start and await self.jobs.start(deferrer.make_new_job(**arguments)):
            return
        with suppress(AlreadyEnqueued):
            self.jobs.fetch_soon(self._offers.queued(await deferrer.defer_async(**arguments)))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Create the tables and run jobs until the context is left. Jobs that still run then are aborted."""
        await asyncio.to_thread(JOB_SCHEMA.prepare, self._address)
        async with self._app.open_async():
            self.jobs.accepting = True
            loops = [
                asyncio.create_task(self._supervise(), name="job-worker"),
                asyncio.create_task(self._sweep_regularly(), name="job-sweeper"),
            ]
            try:
                yield
            finally:
                await stop_tasks(*loops, repeat_seconds=_CANCEL_SECONDS)

    def _registered(self, work: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def execute(context: JobContext, **arguments: Any) -> None:
            execution = _execution(context.job)
            self._executing.add(execution)
            try:
                await work(context, **arguments)
            finally:
                self._executing.discard(execution)

        return execute

    async def _supervise(self) -> None:
        while not _is_cancelled():
            try:
                await self._app.run_worker_async(
                    queues=[self.server],
                    name=self.server,
                    concurrency=self._concurrency,
                    install_signal_handlers=False,
                    fetch_job_polling_interval=_POLL_SECONDS,
                    abort_job_polling_interval=_POLL_SECONDS,
                    update_heartbeat_interval=_HEARTBEAT_SECONDS,
                    stalled_worker_timeout=_PRUNE_SECONDS,
                    shutdown_graceful_timeout=0,
                    delete_jobs=DeleteJobCondition.ALWAYS,
                )
                logger.warning("The worker of the job queue stopped; it is restarted")
            except Exception as error:
                logger.warning("The worker of the job queue failed and is restarted: %s", _reason(error))
            self.jobs.worker_id = None
            await asyncio.sleep(_RESTART_SECONDS)

    async def _sweep_regularly(self) -> None:
        lost: Collection[tuple[int, int]] = ()
        rounds, sweep_from = 0, time.monotonic()
        while not _is_cancelled():
            await asyncio.sleep(_SWEEP_SECONDS)
            began = time.monotonic()
            try:
                if self.jobs.accepting:
                    await self.jobs.announce_load(self.server, self._load)
                if began >= sweep_from:
                    await self._take_over()
                rounds += 1
                if rounds % _ROUNDS == 0:
                    lost = await self._requeue_lost(lost)
                    self.queued = sum(queue["todo"] for queue in await self.jobs.list_queues_async(self.server))
            except ConnectorException as error:
                logger.debug("Dead workers could not be looked for: %s", _reason(error))
                # The other processes had no heartbeat either while the database was unreachable.
                sweep_from = time.monotonic() + STALLED_SECONDS
            else:
                if time.monotonic() - began > _HEARTBEAT_SECONDS:
                    sweep_from = time.monotonic() + STALLED_SECONDS

    async def _take_over(self) -> None:
        """Queue the jobs of dead workers again, each once."""
        for job in await self.jobs.get_stalled_jobs(queue=self.server, seconds_since_heartbeat=STALLED_SECONDS):
            if await self.jobs.give_back(job):
                logger.warning("%s: its process is gone, so another one takes it over", job.call_string)

    async def _requeue_lost(self, before: Collection[tuple[int, int]]) -> Collection[tuple[int, int]]:
        """Queue the jobs again that this worker should execute and does not, now and at the last call.

        The end of such a job could not be stored, because the database was unreachable for a moment.
        """
        if self.jobs.worker_id is None:
            return ()
        assigned = await self.jobs.list_jobs_async(queue=self.server, status="doing", worker_id=self.jobs.worker_id)
        lost = {_execution(job): job for job in assigned if _execution(job) not in self._executing}
        for execution, job in lost.items():
            if execution in before:
                await self.jobs.give_back(job)
        return lost.keys()


def _is_cancelled() -> bool:
    """If the database cannot be reached, code that is cancelled may raise that error instead."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _execution(job: Job) -> tuple[int, int]:
    return job.id or 0, job.attempts


def _reason(error: BaseException) -> str:
    return str(error.__cause__ or error).partition("\n")[0] or type(error).__name__
