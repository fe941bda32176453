"""The tasks that callers of this process follow. When it stops, their streams end, and say that the task goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from a2a.types.a2a_pb2 import Task

from ai_platform_engineering.storage.event_log.event_log import Entry, EventLog
from ai_platform_engineering.utils.a2a_common.codec.labels import handed_over
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES, WAITING_STATES
from ai_platform_engineering.utils.a2a_common.wire import StreamState, hand_over, is_handed_over, stamp


class FollowedTasks:
    """`agent` is the one that this server serves."""

    def __init__(self, log: EventLog, agent: str) -> None:
        self._log = log
        self._agent = agent
        self._followers: Counter[str] = Counter()
        self._are_ended = False

    async def follow(self, task_id: str, after: int) -> AsyncIterator[Sequence[Entry]]:
        """The entries of a task after `after`. If the server stops before the run ends, a status is last.

        It is not in the log, because it is about this stream only; its number is that of the last event.
        """
        self._followers[task_id] += 1
        last: Entry | None = None
        try:
            async for entries in self._entries(task_id, after):
                last = entries[-1]
                yield entries
        finally:
            self._followers[task_id] -= 1
            if not self._followers[task_id]:
                del self._followers[task_id]
        if self._are_ended and not (last is not None and is_handed_over(last.event)):
            task = await self._log.task(task_id)
            if task is not None and task.status.state not in TERMINAL_STATES | WAITING_STATES:
                yield [self._goes_on(task, after if last is None else last.seq)]

    def end(self) -> None:
        """End all streams after the stored entries, also those that are opened later."""
        self._are_ended = True
        for task_id in self._followers:
            self._log.end_following(task_id)

    async def _entries(self, task_id: str, after: int) -> AsyncIterator[Sequence[Entry]]:
        if not self._are_ended:
            async for entries in self._log.follow(task_id, after):
                yield entries
        elif stored := await self._log.read(task_id, after):
            yield stored

    def _goes_on(self, task: Task, seq: int) -> Entry:
        trace_id = task.metadata.fields["trace_id"].string_value
        state = StreamState(task.id, task.context_id, trace_id, self._agent)
        (event,) = hand_over(state, task.status.state, handed_over(self._agent))
        stamp(event, seq)
        return Entry(seq, event)
