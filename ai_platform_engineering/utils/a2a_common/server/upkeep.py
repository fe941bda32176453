"""What a log needs beside being written: the runs of a process that died are ended, and so is what nobody answers;
old tasks are dropped."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Self

from a2a.types.a2a_pb2 import Task

from ai_platform_engineering.events import SUPERVISOR, Failed
from ai_platform_engineering.runs.outcomes import NOTHING_RECORDED, START_OVER, InterruptedRun
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import EventLog, MemoryEventLog
from ai_platform_engineering.storage.event_log.file import tasks_file
from ai_platform_engineering.storage.event_log.sqlite_log import SqliteEventLog
from ai_platform_engineering.utils.a2a_common.codec.labels import stopped
from ai_platform_engineering.utils.a2a_common.codec.parts import text_of
from ai_platform_engineering.utils.a2a_common.protocol import PARKED_STATES
from ai_platform_engineering.utils.a2a_common.request_context import is_delegated
from ai_platform_engineering.utils.a2a_common.server.incoming import question_of
from ai_platform_engineering.utils.a2a_common.server.task_closing import asking_again, closing, events_so_far
from ai_platform_engineering.utils.a2a_common.wire import StreamState, WireEvent, metadata_of

logger = logging.getLogger(__name__)

_ROUND_SECONDS: Final = 3600.0
_MIN_ROUND_SECONDS: Final = 1.0

Forget = Callable[[Iterable[str]], Awaitable[None]]
"""Drops the conversations with these ids."""

Release = Callable[[InterruptedRun, bool], Awaitable[None]]
"""Completes the conversation of a run that was ended, or drops the whole conversation if nobody comes back to it."""


def event_log(settings: Settings, agent: str = SUPERVISOR) -> EventLog:
    """The log that the settings ask for."""
    if settings.event_log == "memory":
        return MemoryEventLog(settings.event_log_max_tasks)
    return SqliteEventLog(tasks_file(settings, agent))


async def release_nothing(_run: InterruptedRun, _for_good: bool) -> None:
    pass


@asynccontextmanager
async def kept_up(
    log: EventLog, settings: Settings, agent: str, forget: Forget, release: Release = release_nothing
) -> AsyncIterator[None]:
    """See to an opened log while its server runs."""
    if isinstance(log, SqliteEventLog):
        await end_interrupted(log, agent, release)
    rounds = asyncio.create_task(_rounds(log, settings, agent, forget, release), name="event-log-upkeep")
    try:
        yield
    finally:
        rounds.cancel()
        with suppress(asyncio.CancelledError):
            await rounds


async def end_interrupted(log: SqliteEventLog, agent: str, release: Release = release_nothing) -> None:
    """Nobody works any more on what the last process worked on; who follows it has to hear that."""
    failed = Failed("stopped", stopped(agent))
    for task_id in await log.unfinished():
        story = await _Story.read(log, task_id, agent)
        if story is None:
            continue
        if story.task.status.state in PARKED_STATES:
            # An answer that nobody had begun to work on: the person is asked once more.
            await log.append(task_id, asking_again(story.state, story.kept))
        else:
            await log.append(task_id, closing(story.state, story.kept, failed, NOTHING_RECORDED))
            await _release(log, story, release)
        logger.info("task %s was interrupted by the end of the last process", task_id)


async def end_overdue(log: EventLog, hours: float, agent: str, release: Release = release_nothing) -> None:
    """End the tasks that have waited for a person for longer than that."""
    failed = Failed("expired", f"Nobody answered within {_span(hours)}, so this was ended.")
    for task_id in await log.overdue(time.time_ns() - int(hours * 3600e9)):
        try:
            story = await _Story.read(log, task_id, agent)
            if story is not None and await log.end_waiting(
                task_id, closing(story.state, story.kept, failed, START_OVER)
            ):
                await _release(log, story, release)
                logger.info("task %s was ended, as nobody answered it", task_id)
        except Exception:  # one that cannot be ended now does not keep the others
            logger.exception("task %s, which nobody answered, could not be ended", task_id)


@dataclass(frozen=True, slots=True)
class _Story:
    """A task and what was kept of it, as they are needed to write its end."""

    task: Task
    state: StreamState
    kept: list[WireEvent]

    @classmethod
    async def read(cls, log: EventLog, task_id: str, agent: str) -> Self | None:
        task = await log.task(task_id)
        if task is None:
            return None
        kept = [entry.event for entry in await log.read(task_id)]
        trace_id = metadata_of(kept[0]).fields["trace_id"].string_value if kept else ""
        return cls(task, StreamState(task_id, task.context_id, trace_id, agent), kept)

    async def interrupted_run(self, log: EventLog) -> InterruptedRun:
        """The run as its conversation needs it, with the end that people were shown."""
        task = self.task
        ended = await log.task(task.id)
        return InterruptedRun(
            task.context_id,
            task.id,
            events_so_far(self.state.agent, self.kept),
            question=question_of(task.history[0]) if task.history else "",
            ending=text_of(ended.status.message.parts) if ended is not None else "",
        )

    @property
    def delegated(self) -> bool:
        """A supervisor asked: nobody comes back to the conversation."""
        return any(is_delegated(message) for message in self.task.history[:1])


async def _release(log: EventLog, story: _Story, release: Release) -> None:
    if await log.waiting(story.task.context_id) is None:
        await release(await story.interrupted_run(log), story.delegated)


async def _rounds(log: EventLog, settings: Settings, agent: str, forget: Forget, release: Release) -> None:
    hours = settings.form_expiry_hours
    pause = max(_MIN_ROUND_SECONDS, min(_ROUND_SECONDS, hours * 3600)) if hours else _ROUND_SECONDS
    while True:
        try:
            if hours:
                await end_overdue(log, hours, agent, release)
            await forget(await log.prune(settings.event_log_max_tasks, settings.event_log_max_age_days))
        except Exception:  # a full disk, say; the next time may go better
            logger.exception("old tasks could not be dropped")
        await asyncio.sleep(pause)


def _span(hours: float) -> str:
    match hours:
        case _ if hours % 24 == 0:
            number, unit = hours / 24, "day"
        case _ if hours >= 1:
            number, unit = hours, "hour"
        case _:
            number, unit = hours * 60, "minute"
    return f"{number:g} {unit}{'' if number == 1 else 's'}"
