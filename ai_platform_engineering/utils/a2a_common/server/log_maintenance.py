"""Maintenance of an event log: ends the tasks of a killed process and expired forms, prunes old tasks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

from ai_platform_engineering.events import SUPERVISOR, Failed
from ai_platform_engineering.runs.outcomes import START_OVER, InterruptedRun
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.storage.event_log.file import tasks_file
from ai_platform_engineering.storage.event_log.log_database import postgres_log
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from ai_platform_engineering.storage.store_timer import NO_TIMER, StoreTimer
from ai_platform_engineering.utils.a2a_common.server.task_endings import EndedTask, TaskEndings
from ai_platform_engineering.utils.a2a_common.server.work import Every
from ai_platform_engineering.utils.background_tasks import stop_tasks

logger = logging.getLogger(__name__)

_ROUND_SECONDS: Final = 3600.0
_MIN_ROUND_SECONDS: Final = 1.0

Forget = Callable[[Iterable[str]], Awaitable[None]]
"""Deletes the conversations with these ids."""

Release = Callable[[InterruptedRun, bool], Awaitable[None]]
"""Completes the conversation of a run that was ended; deletes the conversation if the second argument is true."""


def event_log(settings: Settings, agent: str = SUPERVISOR, timer: StoreTimer = NO_TIMER) -> EventLog:
    """The log that the settings ask for."""
    match settings.event_log:
        case "memory":
            return MemoryEventLog(settings.event_log_max_tasks)
        case "sqlite":
            return SqliteEventLog(tasks_file(settings, agent), timer)
        case "postgres":
            return postgres_log(settings, agent, timer)


async def release_nothing(_run: InterruptedRun, _for_good: bool) -> None:
    pass


@asynccontextmanager
async def maintained(
    log: EventLog,
    settings: Settings,
    agent: str,
    forget: Forget,
    release: Release = release_nothing,
    *,
    resumes: bool = False,
    every: Every | None = None,
) -> AsyncIterator[None]:
    """Maintain an open log while its server runs. `resumes`: the server continues unfinished tasks itself.

    `every` plans the work where several servers share the log, so that one of them does it.
    """

    async def maintain() -> None:
        await _maintain(log, settings, agent, forget, release)

    if log.durable and not resumes:
        await end_interrupted(log, agent, release)
    pause = _pause(settings.form_expiry_hours)
    if every is not None:
        every("maintenance", pause, maintain)
        yield
        return
    rounds = asyncio.create_task(_rounds(pause, maintain), name="event-log-maintenance")
    try:
        yield
    finally:
        await stop_tasks(rounds)


async def end_interrupted(log: EventLog, agent: str, release: Release = release_nothing) -> None:
    """End the tasks that the last process left unfinished, so that their subscribers get an end."""
    endings = TaskEndings(log, agent)
    for task_id, _ in await log.unfinished():
        await _release(log, await endings.stop(task_id), release)
        logger.info("task %s was interrupted by the end of the last process", task_id)


async def end_overdue(log: EventLog, hours: float, agent: str, release: Release = release_nothing) -> None:
    """End the tasks that have waited for a person for longer than `hours`."""
    endings = TaskEndings(log, agent)
    expired = Failed("expired", f"The form was not answered within {_span(hours)}, so the task was ended.")
    for task_id in await log.overdue(time.time_ns() - int(hours * 3600e9)):
        try:
            ended = await endings.end_waiting(task_id, expired, otherwise=START_OVER)
            if ended is not None:
                await _release(log, ended, release)
                logger.info("task %s was ended: its form expired", task_id)
        except Exception:  # the other tasks can still be ended
            logger.exception("task %s, whose form expired, could not be ended", task_id)


async def _release(log: EventLog, ended: EndedTask | None, release: Release) -> None:
    if ended is not None and await log.waiting(ended.run.context_id) is None:
        await release(ended.run, ended.delegated)


async def _rounds(pause: float, maintain: Callable[[], Awaitable[None]]) -> None:
    while True:
        await maintain()
        await asyncio.sleep(pause)


async def _maintain(log: EventLog, settings: Settings, agent: str, forget: Forget, release: Release) -> None:
    try:
        if settings.form_expiry_hours:
            await end_overdue(log, settings.form_expiry_hours, agent, release)
        await forget(await log.prune(settings.event_log_max_tasks, settings.event_log_max_age_days))
    except Exception:  # a full disk, for example; the next round may succeed
        logger.exception("old tasks could not be pruned")


def _pause(hours: float) -> float:
    return max(_MIN_ROUND_SECONDS, min(_ROUND_SECONDS, hours * 3600)) if hours else _ROUND_SECONDS


def _span(hours: float) -> str:
    match hours:
        case _ if hours % 24 == 0:
            number, unit = hours / 24, "day"
        case _ if hours >= 1:
            number, unit = hours, "hour"
        case _:
            number, unit = hours * 60, "minute"
    return f"{number:g} {unit}{'' if number == 1 else 's'}"
