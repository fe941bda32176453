"""Background ingest jobs: start, query and cancel them. Only the newest ones are remembered, in memory."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from ai_platform_engineering.knowledge_bases.rag.ingest.report import IngestReport
from ai_platform_engineering.knowledge_bases.rag.names import DATASOURCE_NAME
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

MAX_RUNNING: Final = 2
MAX_ACTIVE: Final = 20
MAX_JOBS: Final = 100
_MAX_FAILURES: Final = 20
_UNEXPECTED: Final = "An unexpected error occurred; the log of the server has the details."


class UnknownJobError(ReadableError):
    def __init__(self, job: str) -> None:
        super().__init__(f"There is no ingest job {job!r}; jobs are lost when the server stops.")


class DatasourceBusyError(ReadableError):
    def __init__(self, datasource: str, job: str) -> None:
        super().__init__(f"The datasource {datasource!r} is being ingested by the job {job}; wait until it has ended.")


class TooManyJobsError(ReadableError):
    def __init__(self) -> None:
        super().__init__(f"{MAX_ACTIVE} ingest jobs are running or waiting; try again when one has ended.")


class IngestRequest(BaseModel):
    """A page, the pages below it, or a sitemap to ingest."""

    model_config = ConfigDict(extra="forbid")

    url: str = Field(max_length=2000, description="An http:// or https:// address.")
    kind: Literal["page", "sitemap"] | None = Field(None, description="Detected from the content if omitted.")
    datasource: str | None = Field(None, pattern=DATASOURCE_NAME, description="The host if omitted.")
    depth: int = Field(0, ge=0, le=20, description="How many links to follow, to pages below the path.")
    max_pages: int | None = Field(None, ge=1, description="INGEST_MAX_PAGES if omitted, which is also the upper limit.")


class IngestFailure(BaseModel):
    path: str
    reason: str


class IngestResult(BaseModel):
    """Numbers of documents by outcome. `unchanged` ones were not read again; `failures` lists the first that failed."""

    added: int
    updated: int
    unchanged: int
    removed: int
    failed: int
    chunks: int
    seconds: float
    complete: bool = Field(description="False if a limit or an error cut the listing; then no document was removed.")
    failures: list[IngestFailure]

    @classmethod
    def of(cls, report: IngestReport) -> Self:
        return cls(
            added=report.added,
            updated=report.updated,
            unchanged=report.unchanged,
            removed=report.removed,
            failed=len(report.failed),
            chunks=report.chunks,
            seconds=round(report.seconds, 3),
            complete=report.complete,
            failures=[IngestFailure(path=path, reason=reason) for path, reason in report.failed[:_MAX_FAILURES]],
        )


class IngestJob(BaseModel):
    """The state of an ingest. Documents that a canceled job has stored stay."""

    job: str
    state: Literal["waiting", "running", "succeeded", "failed", "canceled"]
    datasource: str
    url: str
    created: datetime
    finished: datetime | None = None
    documents: int = Field(0, description="Documents processed so far.")
    result: IngestResult | None = None
    error: str | None = None


class IngestJobList(BaseModel):
    jobs: list[IngestJob] = Field(description="The newest first; older ones are dropped.")


ReportProgress = Callable[[int], None]
Work = Callable[[ReportProgress], Awaitable[IngestResult]]


class IngestJobs:
    """The jobs of one knowledge base. At most `MAX_RUNNING` run in parallel, and one for each datasource."""

    def __init__(self) -> None:
        self._jobs: dict[str, IngestJob] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(MAX_RUNNING)

    def start(self, datasource: str, url: str, work: Work) -> IngestJob:
        active = [job for job in self._jobs.values() if job.finished is None]
        for job in active:
            if job.datasource == datasource:
                raise DatasourceBusyError(datasource, job.job)
        if len(active) == MAX_ACTIVE:
            raise TooManyJobsError
        job = IngestJob(
            job=secrets.token_hex(8), state="waiting", datasource=datasource, url=url, created=datetime.now(UTC)
        )
        self._jobs[job.job] = job
        task = asyncio.create_task(self._run(job.job, work))
        self._tasks[job.job] = task
        task.add_done_callback(lambda _task: self._on_task_done(job.job))
        self._drop_oldest()
        return job

    def job(self, job: str) -> IngestJob:
        try:
            return self._jobs[job]
        except KeyError:
            raise UnknownJobError(job) from None

    def jobs(self) -> list[IngestJob]:
        """The newest first."""
        return [*reversed(self._jobs.values())]

    async def cancel(self, job: str) -> IngestJob:
        """Cancel a job and wait for its end. A job that has already ended is returned unchanged."""
        task = self._tasks.get(job)
        if task is not None and self.job(job).finished is None:
            task.cancel()
            await asyncio.wait({task})
        return self.job(job)

    async def aclose(self) -> None:
        tasks = set(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, job: str, work: Work) -> None:
        try:
            async with self._slots:
                self._change(job, state="running")
                result = await work(lambda documents: self._change(job, documents=documents))
        except ReadableError as error:
            self._end(job, state="failed", error=str(error))
        except Exception:
            logger.exception("The ingest job %s failed", job)
            self._end(job, state="failed", error=_UNEXPECTED)
        else:
            self._end(job, state="succeeded", result=result)

    def _on_task_done(self, job: str) -> None:
        del self._tasks[job]
        # A task that is canceled before it starts runs no code of its own.
        if self._jobs[job].finished is None:
            self._end(job, state="canceled")

    def _end(self, job: str, **values: object) -> None:
        self._change(job, finished=datetime.now(UTC), **values)

    def _change(self, job: str, **values: object) -> None:
        self._jobs[job] = self._jobs[job].model_copy(update=values)

    def _drop_oldest(self) -> None:
        ended = [job.job for job in self._jobs.values() if job.finished is not None]
        for job in ended[: max(0, len(self._jobs) - MAX_JOBS)]:
            del self._jobs[job]
