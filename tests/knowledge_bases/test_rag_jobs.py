from __future__ import annotations

import asyncio

import pytest

from ai_platform_engineering.knowledge_bases.rag.ingest.report import FailedDocument, IngestReport
from ai_platform_engineering.knowledge_bases.rag.jobs import (
    MAX_ACTIVE,
    MAX_JOBS,
    MAX_RUNNING,
    DatasourceBusyError,
    IngestJobs,
    IngestResult,
    ReportProgress,
    TooManyJobsError,
    UnknownJobError,
)

REPORT = IngestReport(1, 2, 3, 4, tuple(FailedDocument(f"{n}.md", "It is broken.") for n in range(50)), 5, 6.0, True)


async def quick(_advance: ReportProgress) -> IngestResult:
    return IngestResult.of(REPORT)


async def until_ended(jobs: IngestJobs, job: str) -> None:
    async with asyncio.timeout(90):
        while jobs.job(job).finished is None:  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_the_newest_are_kept_and_those_that_run() -> None:
    jobs, release = IngestJobs(), asyncio.Event()

    async def waiting(advance: ReportProgress) -> IngestResult:
        advance(7)
        await release.wait()
        return IngestResult.of(REPORT)

    running = jobs.start("slow", "https://example.com/", waiting)
    first = jobs.start("s0", "https://example.com/", quick)
    for number in range(1, MAX_JOBS + 20):
        job = jobs.start(f"s{number}", "https://example.com/", quick)
        await until_ended(jobs, job.job)
    with pytest.raises(UnknownJobError):
        jobs.job(first.job)
    assert (jobs.job(running.job).state, jobs.job(running.job).documents) == ("running", 7)
    release.set()
    await until_ended(jobs, running.job)
    assert jobs.job(running.job).state == "succeeded"
    await jobs.aclose()


async def test_only_a_few_run_at_once() -> None:
    jobs, release, running = IngestJobs(), asyncio.Event(), 0

    async def counted(_advance: ReportProgress) -> IngestResult:
        nonlocal running
        running += 1
        await release.wait()
        return IngestResult.of(REPORT)

    started = [jobs.start(f"s{number}", "https://example.com/", counted) for number in range(MAX_RUNNING + 3)]
    async with asyncio.timeout(90):
        while running < MAX_RUNNING:  # noqa: ASYNC110 - jobs tell when they end, not when they begin
            await asyncio.sleep(0)
    # One more would begin in the same turns of the event loop.
    await asyncio.sleep(0.01)
    assert running == MAX_RUNNING
    assert [jobs.job(job.job).state for job in started] == ["running"] * MAX_RUNNING + ["waiting"] * 3
    with pytest.raises(DatasourceBusyError, match="s4"):
        jobs.start("s4", "https://example.com/", counted)
    release.set()
    for job in started:
        await until_ended(jobs, job.job)
    assert jobs.start("s4", "https://example.com/", quick).state == "waiting"
    await jobs.aclose()


async def test_no_more_wait_than_can_be_looked_after() -> None:
    async def endless(_advance: ReportProgress) -> IngestResult:
        await asyncio.Event().wait()
        raise AssertionError

    jobs = IngestJobs()
    for number in range(MAX_ACTIVE):
        jobs.start(f"s{number}", "https://example.com/", endless)
    with pytest.raises(TooManyJobsError):
        jobs.start("one more", "https://example.com/", endless)
    await jobs.aclose()


async def test_one_that_waits_is_canceled_and_gives_its_place_and_its_datasource_back() -> None:
    jobs, release = IngestJobs(), asyncio.Event()

    async def waiting(_advance: ReportProgress) -> IngestResult:
        await release.wait()
        return IngestResult.of(REPORT)

    started = [jobs.start(f"s{number}", "https://example.com/", waiting) for number in range(MAX_RUNNING + 1)]
    await asyncio.sleep(0)
    for canceled in (started[-1], started[0]):
        ended, same = await asyncio.gather(jobs.cancel(canceled.job), jobs.cancel(canceled.job))
        assert ended == same
        assert (ended.state, ended.finished is not None) == ("canceled", True)
    again = jobs.start("s0", "https://example.com/", quick)
    await until_ended(jobs, again.job)
    assert jobs.job(started[1].job).state == "running"
    assert [job.job for job in jobs.jobs()] == [again.job, *(job.job for job in reversed(started))]
    await jobs.aclose()
    assert jobs.job(started[1].job).state == "canceled"


async def test_one_that_has_not_begun_is_canceled() -> None:
    jobs = IngestJobs()
    job = jobs.start("s", "https://example.com/", quick)
    assert (await jobs.cancel(job.job)).state == "canceled"
    assert jobs.start("s", "https://example.com/", quick).state == "waiting"
    await jobs.aclose()


async def test_an_error_is_reported_without_internal_details() -> None:
    async def failing(_advance: ReportProgress) -> IngestResult:
        raise ValueError("password=hunter2")

    jobs = IngestJobs()
    job = jobs.start("s", "https://example.com/", failing)
    await until_ended(jobs, job.job)
    ended = jobs.job(job.job)
    assert (ended.state, "hunter2" in (ended.error or "")) == ("failed", False)
    await jobs.aclose()


def test_many_failures_are_counted_and_some_named() -> None:
    result = IngestResult.of(REPORT)
    assert (result.failed, len(result.failures)) == (50, 20)
    assert result.failures[0].model_dump() == {"path": "0.md", "reason": "It is broken."}
