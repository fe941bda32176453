"""Procrastinate: fenced changes of jobs, a listener that survives an outage, and its tables.

Its tables and SQL functions are not documented, nor is a subclass of its job manager. They are needed because
Procrastinate does not check which worker changes a job: one that was suspended, and whose job was given to another
worker, would finish the job of the other one.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any, Final, LiteralString

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
    """

    def __init__(self, connector: BaseConnector, delay: Callable[[int], float | None] = lambda _: 0.0) -> None:
        super().__init__(connector)
        self._delay = delay
        self._on_notification: NotificationCallback | None = None
        self._fetching: asyncio.Handle | None = None
        self._fetch_at = math.inf
        self._waking: set[asyncio.Future[None]] = set()
        self.accepting = True
        """Whether the worker may fetch jobs. If not, it keeps its heartbeat, and its jobs can be aborted."""
        self._notifications = 0

    async def listen_for_jobs(
        self, *, on_notification: NotificationCallback, queues: Iterable[str] | None = None
    ) -> None:
        async def receive(*, channel: str, notification: Notification) -> None:
            if notification["type"] != "job_inserted":
                await on_notification(channel=channel, notification=notification)
            elif (seconds := self._delay(notification["job_id"])) is not None:
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
        if self._on_notification is not None:
            notification: Notification = {"type": "job_inserted", "job_id": 0}
            waking = asyncio.ensure_future(self._on_notification(channel="", notification=notification))
            self._waking.add(waking)
            waking.add_done_callback(self._waking.discard)

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> Job | None:
        # The worker ignores notifications that arrive while it fetches, so the job would wait for the next poll.
        job, known = None, -1
        while self.accepting and job is None and known != self._notifications:
            known = self._notifications
            try:
                job = await super().fetch_job(queues, worker_id)
            except UniqueViolation:
                # Another worker took a job of the same lock at the same time. The end of that job is notified.
                job = None
        return job

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
