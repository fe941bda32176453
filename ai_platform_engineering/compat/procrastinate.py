"""Procrastinate: fenced changes of jobs, a listener that survives an outage, and its tables.

Its tables and SQL functions are not documented, nor is a subclass of its job manager. They are needed because
Procrastinate does not check which worker changes a job: one that was suspended, and whose job was given to another
worker, would finish the job of the other one.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, Final, LiteralString, cast
from uuid import uuid4

from procrastinate import PsycopgConnector
from procrastinate.connector import BaseConnector, Notify
from procrastinate.exceptions import ConnectorException, UniqueViolation
from procrastinate.jobs import Job, Notification, Status
from procrastinate.manager import JobManager, NotificationCallback
from procrastinate.schema import SchemaManager

_RECONNECT_SECONDS: Final = 0.5

# `attempts` grows whenever a job returns to the queue, so it identifies one execution.
_EXECUTION: Final[LiteralString] = (
    "FROM (SELECT id FROM procrastinate_jobs"
    " WHERE id = %(job_id)s AND status = 'doing' AND attempts = %(attempts)s FOR UPDATE) AS execution"
)
_FINISH: Final[LiteralString] = (
    f"SELECT execution.id, procrastinate_finish_job_v1(execution.id, %(status)s, %(delete_job)s) {_EXECUTION}"
)
_RETRY: Final[LiteralString] = (
    "SELECT execution.id, procrastinate_retry_job_v2("
    f"execution.id, %(retry_at)s::timestamptz, %(priority)s, %(queue)s, %(lock)s) {_EXECUTION}"
)
_WAKE: Final[LiteralString] = """
WITH woken AS (
    UPDATE procrastinate_jobs SET scheduled_at = NULL
    WHERE lock = %(lock)s AND status = 'todo' AND scheduled_at IS NOT NULL RETURNING id, queue_name
)
SELECT pg_notify('procrastinate_queue_v1#' || queue_name, '{"type": "job_inserted", "job_id": ' || id || '}')
FROM woken
"""
# A new job as if a worker had fetched it already: no worker is notified, and none looks for it.
_START: Final[LiteralString] = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, status, worker_id)
SELECT %(queue)s, %(task_name)s, %(priority)s, %(lock)s, %(queueing_lock)s, %(args)s, 'doing', id
FROM procrastinate_workers
WHERE id = %(worker_id)s
    AND NOT EXISTS (SELECT FROM procrastinate_jobs WHERE lock = %(lock)s AND status IN ('todo', 'doing'))
ON CONFLICT DO NOTHING RETURNING *
"""
# A notification of our own, on the channel that the workers of a queue listen to anyway.
_LOAD: Final = "platform_engineer_load"
_ANNOUNCE_LOAD: Final[LiteralString] = "SELECT pg_notify('procrastinate_queue_v1#' || %(queue)s, %(load)s)"

# A job that leaves the state `doing` frees its lock. Procrastinate notifies workers of new jobs only, so the next job
# of the lock would wait until a worker polls.
NOTIFY_FREE_LOCK: Final[LiteralString] = """
CREATE OR REPLACE FUNCTION platform_engineer_notify_free_lock() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (
        SELECT 1 FROM procrastinate_jobs
        WHERE lock = OLD.lock AND status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now())
    ) THEN
        PERFORM pg_notify(
            'procrastinate_queue_v1#' || OLD.queue_name,
            json_build_object('type', 'job_inserted', 'job_id', OLD.id)::text
        );
    END IF;
    RETURN NULL;
END;
$$;
CREATE OR REPLACE TRIGGER platform_engineer_lock_freed AFTER UPDATE OF status ON procrastinate_jobs
    FOR EACH ROW WHEN (OLD.status = 'doing' AND NEW.status <> 'doing' AND OLD.lock IS NOT NULL)
    EXECUTE FUNCTION platform_engineer_notify_free_lock();
CREATE OR REPLACE TRIGGER platform_engineer_lock_deleted AFTER DELETE ON procrastinate_jobs
    FOR EACH ROW WHEN (OLD.status = 'doing' AND OLD.lock IS NOT NULL)
    EXECUTE FUNCTION platform_engineer_notify_free_lock();
"""


class FencedJobManager(JobManager):
    """Changes a job only during the execution for which it was fetched.

    `delay` gets the id of a new job, and returns the seconds after which the worker fetches; None if it need not.
    `on_load` gets the loads of other processes.
    """

    def __init__(
        self,
        connector: BaseConnector,
        delay: Callable[[int], float | None] = lambda _: 0.0,
        on_load: Callable[[str, int], None] = lambda _process, _running: None,
    ) -> None:
        super().__init__(connector)
        self._delay = delay
        self._on_load = on_load
        self._process = uuid4().hex
        self._on_notification: NotificationCallback | None = None
        self._fetching: asyncio.Handle | None = None
        self._fetch_at = math.inf
        self._waking: set[asyncio.Future[None]] = set()
        self.accepting = True
        """Whether the worker may fetch jobs. If not, it keeps its heartbeat, and its jobs can be aborted."""
        self.worker_id: int | None = None
        """The worker that fetches jobs. None before it does."""
        self._starting: set[asyncio.Future[bool]] = set()
        self._started: deque[Job] = deque()
        self._notifications = 0

    @property
    def started(self) -> int:
        """The number of jobs that the worker gets next, without a query."""
        return len(self._started)

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        async def receive(*, channel: str, notification: Notification) -> None:
            received = cast("dict[str, Any]", notification)
            if received["type"] == _LOAD:
                if received["process"] != self._process:
                    self._on_load(received["process"], received["running"])
            elif received["type"] != "job_inserted":
                await on_notification(channel=channel, notification=notification)
            elif (seconds := self._delay(received["job_id"])) is not None:
                self.fetch_soon(seconds)

        self._on_notification = on_notification
        await super().listen_for_jobs(on_notification=receive, queues=queues)

    def fetch_soon(self, seconds: float = 0.0) -> None:
        """Let the worker fetch jobs after so many seconds, or earlier if it is to fetch earlier already."""
        loop = asyncio.get_running_loop()
        fetch_at = loop.time() + seconds
        if self._fetch_at <= fetch_at:
            return
        if self._fetching is not None:
            self._fetching.cancel()
        self._fetch_at = fetch_at
        self._fetching = loop.call_at(fetch_at, self._fetch_now)

    def _fetch_now(self) -> None:
        self._fetching, self._fetch_at = None, math.inf
        self._notifications += 1
        self._wake_worker()

    def _wake_worker(self) -> None:
        if self._on_notification is not None:
            notification: Notification = {"type": "job_inserted", "job_id": 0}
            waking = asyncio.ensure_future(self._on_notification(channel="", notification=notification))
            self._waking.add(waking)
            waking.add_done_callback(self._waking.discard)

    async def start(self, job: Job) -> bool:
        """Store a new job for the worker of this process. False if it must be queued, for example behind others of its
        lock."""
        if not self.accepting or self.worker_id is None:
            return False
        # A job that is stored must get to the worker, also if the caller is cancelled meanwhile.
        starting = asyncio.ensure_future(self._start(job, self.worker_id))
        self._starting.add(starting)
        starting.add_done_callback(self._starting.discard)
        return await asyncio.shield(starting)

    async def _start(self, job: Job, worker_id: int) -> bool:
        rows = await self.connector.execute_query_all_async(
            _START,
            queue=job.queue,
            task_name=job.task_name,
            priority=job.priority,
            lock=job.lock,
            queueing_lock=job.queueing_lock,
            args=job.task_kwargs,
            worker_id=worker_id,
        )
        self._started.extend(Job.from_row(row) for row in rows)
        self._wake_worker()
        return bool(rows)

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        if worker_id != self.worker_id:
            # The jobs of an earlier worker are found by its heartbeat.
            self.worker_id = worker_id
            self._started.clear()
        # The worker ignores notifications that arrive while it fetches, so the job would wait for the next poll.
        known = -1
        while not self._started and self.accepting and known != self._notifications:
            known = self._notifications
            # A violation: another worker took a job of the same lock at the same time. The end of that job is notified.
            with suppress(UniqueViolation):
                if (job := await super().fetch_job(queues, worker_id)) is not None:
                    return job
        return self._started.popleft() if self._started else None

    async def finish_job(self, job: Job, status: Status, delete_job: bool) -> None:
        await self._change(_FINISH, job, status=status.value, delete_job=delete_job)

    async def retry_job(
        self,
        job: Job,
        retry_at: datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        await self.give_back(job, retry_at, priority=priority, queue=queue, lock=lock)

    async def give_back(
        self,
        job: Job,
        retry_at: datetime | None = None,
        *,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> bool:
        """Return a job to the queue. False if its execution is over, or if the same job was queued again meanwhile."""
        arguments = {"retry_at": retry_at, "priority": priority, "queue": queue, "lock": lock}
        try:
            return await self._change(_RETRY, job, **arguments)
        except UniqueViolation:  # of the queueing lock
            await self.finish_job(job, Status.ABORTED, delete_job=True)
            return False

    async def announce_load(self, queue: str, running: int) -> None:
        """Announce to the other workers of a queue how many jobs this process executes."""
        load = json.dumps({"type": _LOAD, "process": self._process, "running": running})
        await self.connector.execute_query_all_async(_ANNOUNCE_LOAD, queue=queue, load=load)

    async def wake(self, lock: str | None) -> None:
        """Let the jobs of a lock that are scheduled for later start now."""
        await self.connector.execute_query_all_async(_WAKE, lock=lock)

    async def _change(self, statement: LiteralString, job: Job, **arguments: Any) -> bool:
        changed = await self.connector.execute_query_all_async(
            statement, job_id=job.id, attempts=job.attempts, **arguments
        )
        return bool(changed)


class ReconnectingConnector(PsycopgConnector):
    """Listens again after an outage. The worker would otherwise stop, and abort its jobs."""

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        channels = list(channels)
        while True:
            try:
                await super().listen_notify(on_notification, channels)
            except ConnectorException:
                await asyncio.sleep(_RECONNECT_SECONDS)


def procrastinate_schema() -> LiteralString:
    """The statements that create the tables."""
    return SchemaManager.get_schema()


def schema_version() -> str:
    """The version of the tables. If an upgrade changes it, `JOB_SCHEMA` needs a migration: the newer ones of
    Procrastinate's own."""
    migrations = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    return migrations[-1].name.partition("_")[0]
