"""What a log needs beside being written: the runs of a process that died are ended, and old tasks are dropped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

from ai_platform_engineering.events import SUPERVISOR, Failed
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.codec.labels import display
from ai_platform_engineering.utils.a2a_common.log.event_log import EventLog, MemoryEventLog
from ai_platform_engineering.utils.a2a_common.log.file import tasks_file
from ai_platform_engineering.utils.a2a_common.log.sqlite_log import SqliteEventLog
from ai_platform_engineering.utils.a2a_common.log.task_closing import asking_again, closing
from ai_platform_engineering.utils.a2a_common.log.task_fold import PARKED_STATES
from ai_platform_engineering.utils.a2a_common.wire import StreamState, metadata_of

logger = logging.getLogger(__name__)

_PRUNING_SECONDS: Final = 3600.0

Forget = Callable[[Iterable[str]], Awaitable[None]]
"""Drops the conversations with these ids."""


def event_log(settings: Settings, agent: str = SUPERVISOR) -> EventLog:
    """The log that the settings ask for."""
    if settings.event_log == "memory":
        return MemoryEventLog(settings.event_log_max_tasks)
    return SqliteEventLog(tasks_file(settings, agent))


@asynccontextmanager
async def kept_up(log: EventLog, settings: Settings, agent: str, forget: Forget) -> AsyncIterator[None]:
    """See to an opened log while its server runs."""
    if not isinstance(log, SqliteEventLog):
        yield
        return
    await end_interrupted(log, agent)
    pruning = asyncio.create_task(_prune(log, settings, forget), name="event-log-pruning")
    try:
        yield
    finally:
        pruning.cancel()
        with suppress(asyncio.CancelledError):
            await pruning


async def end_interrupted(log: SqliteEventLog, agent: str) -> None:
    """Nobody works any more on what the last process worked on; who follows it has to hear that."""
    who = "The supervisor" if agent == SUPERVISOR else f"The {display(agent)} agent"
    failed = Failed("stopped", f"{who} was restarted while it worked on this. Ask again.")
    for task_id in await log.unfinished():
        task = await log.task(task_id)
        if task is None:
            continue
        kept = [entry.event for entry in await log.read(task_id)]
        trace_id = metadata_of(kept[0]).fields["trace_id"].string_value if kept else ""
        state = StreamState(task_id, task.context_id, trace_id, agent)
        # An answer that nobody had begun to work on: the person is asked once more.
        answered = task.status.state in PARKED_STATES
        await log.append(task_id, asking_again(state, kept) if answered else closing(state, kept, failed))
        logger.info("task %s was interrupted by the end of the last process", task_id)


async def _prune(log: SqliteEventLog, settings: Settings, forget: Forget) -> None:
    while True:
        try:
            await forget(await log.prune(settings.event_log_max_tasks, settings.event_log_max_age_days))
        except Exception:  # a full disk, say; the next time may go better
            logger.exception("old tasks could not be dropped")
        await asyncio.sleep(_PRUNING_SECONDS)
