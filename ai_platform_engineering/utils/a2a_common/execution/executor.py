"""The executor: one A2A request is one run, and every event of it goes through the log.

The SDK hears only of the life of the task (working, the closing artifact, the end): subscriptions are served from the
log, so the SDK's price per event is paid a few times and not for every token. `execute` writes every ending itself
and raises only when it is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

from a2a.server.agent_execution import AgentExecutor
from a2a.server.agent_execution import RequestContext as A2ARequest
from a2a.server.events import EventQueue
from a2a.types.a2a_pb2 import TaskState, TaskStatusUpdateEvent

from ai_platform_engineering.events import Canceled, Event, Failed
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent, Run
from ai_platform_engineering.utils.a2a_common.execution.conversations import Conversations
from ai_platform_engineering.utils.a2a_common.execution.incoming import question_of, request_context
from ai_platform_engineering.utils.a2a_common.execution.recorder import Recorder
from ai_platform_engineering.utils.a2a_common.log.event_log import Entry, EventLog
from ai_platform_engineering.utils.a2a_common.log.task_closing import closing
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.a2a_common.wire import FORM_ARTIFACT, StreamState, recall
from ai_platform_engineering.utils.errors import ReadableError
from ai_platform_engineering.utils.runs.failures import failure_of

logger = logging.getLogger(__name__)

_WAITING = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
_CLOSING_ARTIFACTS = frozenset({"final_result", "partial_result", FORM_ARTIFACT})


class StoppedError(ReadableError):
    """The server was shut down while it worked."""

    code = "stopped"

    def __init__(self) -> None:
        super().__init__("The server was stopped while it worked on this. Ask again when it is back.")


class RunExecutor(AgentExecutor):
    """Runs an agent's graph for each request, one at a time in each conversation."""

    def __init__(self, agent: BaseLangGraphAgent, log: EventLog, settings: Settings) -> None:
        self._agent = agent
        self._log = log
        self._interval = settings.text_coalesce_ms / 1000
        self._conversations = Conversations()
        self._canceling: set[str] = set()

    async def execute(self, context: A2ARequest, event_queue: EventQueue) -> None:
        request = request_context(context)
        run = self._agent.run(question_of(context.message), request)
        recorder = self._recorder(await self._state(request), event_queue)
        try:
            async with self._conversations.turn(request.context_id), recorder:
                await recorder.begin()
                try:
                    async for event in run.events():
                        recorder.put(event)
                except asyncio.CancelledError:
                    recorder.put(*self._broken_off(run, request.task_id))
                    raise
        except asyncio.CancelledError:
            if not recorder.entered:  # it was still waiting for its turn
                async with recorder:
                    recorder.put(*self._broken_off(run, request.task_id))
            raise
        except Exception as error:  # the SDK would show the exception's text to the caller
            logger.exception("%s: the run broke off", request.trace_id)
            await self._end(request, error, event_queue)
        finally:
            self._canceling.discard(request.task_id)

    async def cancel(self, context: A2ARequest, event_queue: EventQueue) -> None:
        """A running task is cancelled through `execute`; one that waits for a person has nobody else to end it."""
        task = context.current_task
        if task is None or task.status.state not in _WAITING:
            self._canceling.add(context.task_id or "")
        else:
            async with self._recorder(await self._state(request_context(context)), event_queue) as recorder:
                recorder.put(Canceled())

    async def _end(self, request: RequestContext, error: Exception, queue: EventQueue) -> None:
        """End a run whose events could not all be kept: what was shown of it is closed, and nothing else."""
        failure = failure_of(error)
        state = StreamState(request.task_id, request.context_id, request.trace_id, self._agent.name)
        kept = [entry.event for entry in await self._log.read(request.task_id)]
        updates = closing(state, kept, Failed(failure.code, failure.sentence))
        for entry in await self._log.append(request.task_id, updates):
            if _concerns_sdk(entry):
                await queue.enqueue_event(entry.event)

    def _broken_off(self, run: Run, task_id: str) -> Iterator[Event]:
        """A person cancels through `cancel`; nobody else stops a run but a server that shuts down."""
        return run.canceled() if task_id in self._canceling else run.failed(StoppedError())

    def _recorder(self, state: StreamState, queue: EventQueue) -> Recorder:
        async def tell_sdk(entries: Sequence[Entry]) -> None:
            for entry in entries:
                if _concerns_sdk(entry):
                    await queue.enqueue_event(entry.event)

        return Recorder(self._log, state, self._interval, tell_sdk)

    async def _state(self, request: RequestContext) -> StreamState:
        state = StreamState(request.task_id, request.context_id, request.trace_id, self._agent.name)
        recall(state, (entry.event for entry in await self._log.read(request.task_id)))
        return state


def _concerns_sdk(entry: Entry) -> bool:
    return isinstance(entry.event, TaskStatusUpdateEvent) or entry.event.artifact.name in _CLOSING_ARTIFACTS
