"""Assignments: what a task is asked to do is done one request at a time, in order of arrival.

The SDK could do this, with two queues and four tasks of its own for each request. Here a request that waits for its
model costs one, and nothing is left of a task that waits for a person.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import Event, EventQueue
from a2a.server.tasks import PushNotificationSender
from a2a.types.a2a_pb2 import TaskArtifactUpdateEvent, TaskStatusUpdateEvent

from ai_platform_engineering.events import Canceled, Failed
from ai_platform_engineering.runs.outcomes import NOTHING_RECORDED
from ai_platform_engineering.storage.event_log.event_log import EventLog, TaskEndedError
from ai_platform_engineering.storage.event_log.task_fold import ends_task, parks_task
from ai_platform_engineering.utils.a2a_common.codec.labels import stopped
from ai_platform_engineering.utils.a2a_common.protocol import PARKED_STATES, TERMINAL_STATES
from ai_platform_engineering.utils.a2a_common.server.task_closing import asking_again, closing
from ai_platform_engineering.utils.a2a_common.wire import StreamState, encode

logger = logging.getLogger(__name__)

_STOP_SECONDS: Final = 4.0
"""How long runs have to stop. A delegation tells its remote agent, which takes up to two seconds."""

BROKEN_OFF = Failed(code="internal_error", message="An internal error ended the work. The server's log says why.")


class Assignments:
    """Runs the executor. Every request leaves an end in the log, also when the executor raises or forgets."""

    def __init__(
        self, executor: AgentExecutor, log: EventLog, agent: str, push_sender: PushNotificationSender | None
    ) -> None:
        self._executor = executor
        self._log = log
        self._agent = agent
        self._push_sender = push_sender
        self._under_way: dict[str, list[asyncio.Task[None]]] = {}
        self._requests: dict[str, RequestContext] = {}
        self.stopping = False

    def __len__(self) -> int:
        """How many tasks are worked on."""
        return len(self._under_way)

    def give(self, request: RequestContext) -> None:
        """Have the request worked on when what its task was given before is done."""
        task_id = request.task_id or ""
        earlier = self._under_way.setdefault(task_id, [])
        self._requests[task_id] = request
        # A message that was accepted while the server stopped gets its end, too.
        doing = self._end_stopped(request) if self.stopping else self._work(request, task_id, earlier[-1:])
        work = asyncio.create_task(doing, name=f"work:{task_id}")
        earlier.append(work)
        work.add_done_callback(lambda work: self._done(task_id, work))

    async def cancel(self, request: RequestContext) -> None:
        """Stop what the task is doing and what it was given besides."""
        task_id = request.task_id or ""
        try:
            await self._executor.cancel(request, _Notifications(task_id, self._push_sender))
        finally:
            await _stop(self._under_way.get(task_id, ()))
        if await self._log.state(task_id) not in TERMINAL_STATES:
            kept = [entry.event for entry in await self._log.read(task_id)]
            with suppress(TaskEndedError):
                await self._log.append(task_id, closing(self._state(request), kept, Canceled()))

    async def aclose(self) -> None:
        """Stop all work. Every task that was worked on gets its end, so that nobody waits for it any longer."""
        self.stopping = True
        requests = list(self._requests.values())
        await _stop([work for works in self._under_way.values() for work in works], _STOP_SECONDS)
        await asyncio.gather(*map(self._end_stopped, requests))

    async def _end_stopped(self, request: RequestContext) -> None:
        """Write the end of a task whose run was stopped before it could write one itself."""
        task_id = request.task_id or ""
        state = await self._log.state(task_id)
        if state is None or state in TERMINAL_STATES:
            return
        kept = [entry.event for entry in await self._log.read(task_id)]
        with suppress(TaskEndedError):
            if state in PARKED_STATES:
                # An answer that was not worked on: the person is asked once more.
                entries = await self._log.append(task_id, asking_again(self._state(request), kept))
            else:
                ending = Failed("stopped", stopped(self._agent))
                entries = await self._log.append(task_id, closing(self._state(request), kept, ending, NOTHING_RECORDED))
            for entry in entries:
                await _Notifications(task_id, self._push_sender).enqueue_event(entry.event)

    async def _work(self, request: RequestContext, task_id: str, earlier: Sequence[asyncio.Task[None]]) -> None:
        if earlier:
            await asyncio.wait(earlier)
            del earlier
        if await self._log.state(task_id) in TERMINAL_STATES:
            return
        seen = max((entry.seq for entry in await self._log.read(task_id)), default=0)
        notifications = _Notifications(task_id, self._push_sender)
        try:
            await self._executor.execute(request, notifications)
        except Exception:
            logger.exception("task %s: the run broke off", task_id)
        entries = await self._log.read(task_id, seen)
        if any(ends_task(entry.event) or parks_task(entry.event) for entry in entries):
            return
        logger.error("task %s: the run left no end, so it is failed", task_id)
        for entry in await self._log.append(task_id, encode(self._state(request), BROKEN_OFF)):
            await notifications.enqueue_event(entry.event)

    def _state(self, request: RequestContext) -> StreamState:
        return StreamState(request.task_id or "", request.context_id or "", trace_id="", agent=self._agent)

    def _done(self, task_id: str, work: asyncio.Task[None]) -> None:
        works = self._under_way[task_id]
        works.remove(work)
        if not works:
            del self._under_way[task_id]
            del self._requests[task_id]
        if not work.cancelled() and (error := work.exception()):
            logger.error("task %s: its end could not be kept", task_id, exc_info=error)


class _Notifications(EventQueue):
    """What the executor tells of a task's life goes to those who asked to be notified."""

    def __init__(self, task_id: str, sender: PushNotificationSender | None) -> None:
        self._task_id = task_id
        self._sender = sender

    async def enqueue_event(self, event: Event) -> None:
        if self._sender is None or not isinstance(event, TaskStatusUpdateEvent | TaskArtifactUpdateEvent):
            return
        try:
            await self._sender.send_notification(self._task_id, event)
        except Exception:  # the run goes on whether anybody hears of it or not
            logger.exception("task %s: nobody could be notified", self._task_id)


async def _stop(works: Sequence[asyncio.Task[None]], timeout: float | None = None) -> None:
    works = [*works]
    for work in works:
        work.cancel()
    if works:
        await asyncio.wait(works, timeout=timeout)
