"""Takes over the runs of a process that died: which there are, and whether they still make progress."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from ai_platform_engineering.events import Failed
from ai_platform_engineering.storage.event_log.event_log import Claim, Entry, EventLog, TaskEndedError
from ai_platform_engineering.utils.a2a_common.codec.decoding import kind_of
from ai_platform_engineering.utils.a2a_common.server.task_endings import TaskEndings
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from ai_platform_engineering.utils.a2a_common.wire import metadata_of

logger = logging.getLogger(__name__)

MAX_TAKEOVERS: Final = 3
"""A run that was taken over so often without progress ends as failed."""

NO_PROGRESS: Final = Failed(
    "interrupted", f"The work was interrupted {MAX_TAKEOVERS} times without progress, so it was ended."
)

_TEXT_KINDS: Final = frozenset({"text_delta", "message_ended", "working"})


async def take_over(log: EventLog, endings: TaskEndings, task_id: str, context_id: str) -> Assignment | None:
    """Claim the run of a task that has no process. None if the task is ended instead, or has ended."""
    request, entries = await log.request(task_id), await log.read(task_id)
    if request is None:
        return None
    try:
        claim: Claim = await log.claim(task_id, progress_of(entries))
    except TaskEndedError:
        return None
    if claim.attempts > MAX_TAKEOVERS:
        await endings.end(task_id, NO_PROGRESS)
        return None
    logger.info("task %s is resumed", task_id)
    return Assignment(
        task_id,
        context_id,
        request,
        begins_task=not entries,
        # A run may have begun although the log has no event of it yet.
        resumes=True,
        epoch=claim.epoch,
    )


def progress_of(entries: Iterable[Entry]) -> int:
    """The `seq` of the last event that is not text: text is written again after every interruption."""
    return max((entry.seq for entry in entries if kind_of(metadata_of(entry.event)) not in _TEXT_KINDS), default=0)
