"""The undocumented parts of Procrastinate: its tables, its SQL functions and its job manager."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from procrastinate import App
from procrastinate.jobs import Job, Notification, Status
from psycopg import sql

from ai_platform_engineering.compat.procrastinate import FencedJobManager, ReconnectingConnector, schema_version
from ai_platform_engineering.storage.event_log.postgres.schema import LogAddress
from ai_platform_engineering.storage.postgres.job_schema import JOB_SCHEMA, use_job_schema

pytest_plugins = ("tests.services.fixtures",)
pytestmark = pytest.mark.process

QUEUE = "server"
SECONDS = 30


@asynccontextmanager
async def opened(
    database: str, jobs: int, on_load: Callable[[str, int], None] = lambda _process, _running: None
) -> AsyncIterator[tuple[FencedJobManager, list[int]]]:
    """A manager with jobs of one lock, and the ids of two workers."""
    await asyncio.to_thread(JOB_SCHEMA.prepare, LogAddress(database))
    connector = ReconnectingConnector(conninfo=database, min_size=1, configure=use_job_schema)
    app = App(connector=connector)
    app.job_manager = manager = FencedJobManager(connector, on_load=on_load)
    async with app.open_async():
        for _ in range(jobs):
            await app.configure_task("work", queue=QUEUE, lock="lock").defer_async()
        yield manager, [await manager.register_worker() for _ in range(2)]


async def fetched(manager: FencedJobManager, worker: int) -> Job:
    job = await manager.fetch_job([QUEUE], worker)
    assert job is not None
    return job


def new_job(lock: str) -> Job:
    return Job(
        id=None,
        priority=0,
        lock=lock,
        queueing_lock=None,
        task_name="work",
        queue=QUEUE,
        task_kwargs={"number": 1},
    )


def test_the_version_of_the_tables_is_the_one_that_the_statements_were_written_for() -> None:
    assert schema_version() == "03.04.00"


async def test_a_worker_whose_job_was_taken_over_cannot_change_it(database: str) -> None:
    async with opened(database, 1) as (manager, workers):
        mine = await fetched(manager, workers[0])
        assert await manager.give_back(mine)
        taken = await fetched(manager, workers[1])

        await manager.finish_job(mine, Status.SUCCEEDED, delete_job=True)
        assert not await manager.give_back(mine)
        assert await manager.get_job_status_async(taken.id or 0) == Status.DOING

        await manager.finish_job(taken, Status.SUCCEEDED, delete_job=True)
        assert list(await manager.list_jobs_async()) == []


async def test_a_job_that_is_scheduled_for_later_keeps_its_place_and_can_be_woken(database: str) -> None:
    async with opened(database, 2) as (manager, workers):
        first = await fetched(manager, workers[0])
        await manager.give_back(first, datetime.now(UTC) + timedelta(days=1))
        assert await manager.fetch_job([QUEUE], workers[0]) is None

        await manager.wake("lock")

        assert (await fetched(manager, workers[0])).id == first.id


@pytest.mark.parametrize("delete", [True, False])
async def test_the_end_of_a_job_is_notified_if_another_one_waits_for_its_lock(database: str, delete: bool) -> None:
    async with (
        opened(database, 2) as (manager, workers),
        await psycopg.AsyncConnection.connect(database, autocommit=True) as connection,
    ):
        first = await fetched(manager, workers[0])
        await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(f"procrastinate_queue_v1#{QUEUE}")))

        await manager.finish_job(first, Status.SUCCEEDED, delete_job=delete)

        assert [note.payload async for note in connection.notifies(timeout=SECONDS, stop_after=1)]
        await manager.finish_job(await fetched(manager, workers[0]), Status.SUCCEEDED, delete_job=delete)
        assert [note async for note in connection.notifies(timeout=0.1)] == []


async def test_a_notification_during_a_fetch_leads_to_another_fetch(database: str) -> None:
    async with opened(database, 2) as (manager, workers):
        first = await fetched(manager, workers[0])
        heard = asyncio.Event()

        async def hear(**_: object) -> None:
            heard.set()

        listening = asyncio.create_task(manager.listen_for_jobs(on_notification=hear, queues=[QUEUE]))
        query = manager.connector.execute_query_one_async

        async def slow_query(*arguments: object, **options: object) -> object:
            manager.connector.execute_query_one_async = query  # type: ignore[method-assign]
            found = await query(*arguments, **options)  # type: ignore[arg-type]
            async with asyncio.timeout(SECONDS):
                # Repeated, because the listener may not be connected yet.
                while not heard.is_set():
                    await manager.finish_job(first, Status.SUCCEEDED, delete_job=False)
                    await manager.connector.execute_query_all_async(
                        "SELECT pg_notify('procrastinate_queue_v1#' || %(queue)s, %(payload)s)",
                        queue=QUEUE,
                        payload='{"type": "job_inserted", "job_id": 1}',
                    )
                    await asyncio.sleep(0.01)
            return found

        manager.connector.execute_query_one_async = slow_query  # type: ignore[assignment,method-assign]
        assert await manager.fetch_job([QUEUE], workers[1]) is not None
        listening.cancel()


async def test_the_worker_fetches_at_the_earliest_of_the_times_that_were_asked_for(database: str) -> None:
    async with opened(database, 0) as (manager, _):
        heard: asyncio.Queue[str] = asyncio.Queue()

        async def hear(*, notification: Notification, **_: object) -> None:
            heard.put_nowait(notification["type"])

        listening = asyncio.create_task(manager.listen_for_jobs(on_notification=hear, queues=[QUEUE]))
        await asyncio.sleep(0)
        manager.fetch_soon(3600)
        manager.fetch_soon(0.01)
        manager.fetch_soon(60)
        assert await asyncio.wait_for(heard.get(), SECONDS) == "job_inserted"
        manager.fetch_soon()
        assert await asyncio.wait_for(heard.get(), SECONDS) == "job_inserted"
        assert heard.empty()
        listening.cancel()


async def test_a_job_that_is_started_here_needs_no_query_and_occupies_its_lock(database: str) -> None:
    async with opened(database, 0) as (manager, workers):
        assert not await manager.start(new_job("a"))  # no worker runs yet
        assert await manager.fetch_job([QUEUE], workers[0]) is None

        assert await manager.start(new_job("a"))
        assert not await manager.start(new_job("a"))
        assert manager.started == 1
        [stored] = await manager.list_jobs_async()
        job = await fetched(manager, workers[0])
        assert stored == job
        assert (job.status, job.worker_id, job.task_kwargs) == ("doing", workers[0], {"number": 1})

        await manager.finish_job(job, Status.SUCCEEDED, delete_job=True)
        assert await manager.start(new_job("a"))


async def test_a_job_whose_caller_is_cancelled_while_it_is_stored_is_started(database: str) -> None:
    async with opened(database, 0) as (manager, workers):
        await manager.fetch_job([QUEUE], workers[0])
        starting = asyncio.create_task(manager.start(new_job("a")))
        await asyncio.sleep(0)
        starting.cancel()
        async with asyncio.timeout(SECONDS):
            while not manager.started:
                await manager.list_jobs_async()
        assert starting.cancelled()
        assert (await fetched(manager, workers[0])).lock == "a"


async def test_no_job_is_started_before_one_of_its_lock_that_waits(database: str) -> None:
    async with opened(database, 1) as (manager, workers):
        manager.worker_id = workers[0]
        assert not await manager.start(new_job("lock"))


async def test_no_job_is_started_for_a_worker_that_is_gone_or_in_a_process_that_stops(database: str) -> None:
    async with opened(database, 0) as (manager, workers):
        await manager.fetch_job([QUEUE], workers[0])
        await manager.unregister_worker(workers[0])
        assert not await manager.start(new_job("a"))

        await manager.fetch_job([QUEUE], workers[1])
        manager.accepting = False
        assert not await manager.start(new_job("a"))
        assert list(await manager.list_jobs_async()) == []


async def test_a_worker_gets_no_job_that_was_started_for_the_one_before_it(database: str) -> None:
    async with opened(database, 0) as (manager, workers):
        await manager.fetch_job([QUEUE], workers[0])
        await manager.start(new_job("a"))
        assert await manager.fetch_job([QUEUE], workers[1]) is None
        assert manager.started == 0


async def test_a_job_that_is_started_here_precedes_those_of_the_queue(database: str) -> None:
    async with opened(database, 1) as (manager, workers):
        manager.worker_id = workers[0]
        await manager.start(new_job("a"))
        assert [(await fetched(manager, workers[0])).lock for _ in range(2)] == ["a", "lock"]


async def test_a_job_that_is_started_while_the_worker_looks_for_others_is_found(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(database, 0) as (manager, workers):
        manager.worker_id = workers[0]
        query = manager.connector.execute_query_one_async

        async def slow_query(*arguments: Any, **options: Any) -> Any:
            found = await query(*arguments, **options)
            await manager.start(new_job("a"))
            return found

        monkeypatch.setattr(manager.connector, "execute_query_one_async", slow_query)
        assert (await fetched(manager, workers[0])).lock == "a"


async def test_the_workers_of_a_queue_hear_the_load_of_other_processes_only(database: str) -> None:
    heard: asyncio.Queue[int] = asyncio.Queue()

    async def ignore(**_: object) -> None: ...

    async with (
        opened(database, 0, on_load=lambda _process, running: heard.put_nowait(running)) as (manager, _),
        opened(database, 0) as (other, _),
    ):
        listening = asyncio.create_task(manager.listen_for_jobs(on_notification=ignore, queues=[QUEUE]))
        async with asyncio.timeout(SECONDS):
            # Repeated, because the listener may not be connected yet.
            while heard.empty():
                await manager.announce_load(QUEUE, 1)
                await other.announce_load(QUEUE, 7)
                await asyncio.sleep(0.01)
        assert {heard.get_nowait() for _ in range(heard.qsize())} == {7}
        listening.cancel()
