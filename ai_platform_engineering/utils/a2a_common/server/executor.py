"""The executor: one A2A request is one run, and every event of it goes through the log.

The queue hears only of the life of the task (working, the closing artifact, the end), for push notifications:
subscriptions are served from the log. `execute` writes every ending itself and raises only when it is cancelled.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterable, Iterator, Sequence

from a2a.server.agent_execution import AgentExecutor
from a2a.server.agent_execution import RequestContext as A2ARequest
from a2a.server.events import EventQueue
from a2a.types.a2a_pb2 import Message, TaskStatusUpdateEvent

from ai_platform_engineering.events import Canceled, Event, Failed, InputRequired
from ai_platform_engineering.forms.replies import AskAgain, Resume, understand
from ai_platform_engineering.runs.failures import failure_of
from ai_platform_engineering.runs.outcomes import InterruptedRun
from ai_platform_engineering.settings import Settings
from ai_platform_engineering.storage.event_log.event_log import Entry, EventLog
from ai_platform_engineering.utils.a2a_common.base_langgraph_agent import BaseLangGraphAgent, Resumption, Run
from ai_platform_engineering.utils.a2a_common.codec.decoder import decode_updates
from ai_platform_engineering.utils.a2a_common.codec.labels import stopped
from ai_platform_engineering.utils.a2a_common.protocol import PARKED_STATES
from ai_platform_engineering.utils.a2a_common.request_context import RequestContext
from ai_platform_engineering.utils.a2a_common.server.conversations import Conversations
from ai_platform_engineering.utils.a2a_common.server.incoming import question_of, reply_of, request_context
from ai_platform_engineering.utils.a2a_common.server.recorder import Recorder, joining_interval
from ai_platform_engineering.utils.a2a_common.server.task_closing import closing, events_so_far
from ai_platform_engineering.utils.a2a_common.wire import FORM_ARTIFACT, StreamState, WireEvent, recall
from ai_platform_engineering.utils.errors import ReadableError

logger = logging.getLogger(__name__)

_CLOSING_ARTIFACTS = frozenset({"final_result", "partial_result", FORM_ARTIFACT})


class StoppedError(ReadableError):
    """The server was shut down while it worked."""

    code = "stopped"

    def __init__(self, agent: str) -> None:
        super().__init__(stopped(agent))


class RunExecutor(AgentExecutor):
    """Runs an agent's graph for each request, one at a time in each conversation."""

    def __init__(self, agent: BaseLangGraphAgent, log: EventLog, settings: Settings) -> None:
        self._agent = agent
        self._log = log
        self._interval = settings.text_coalesce_ms / 1000
        self._conversations = Conversations()
        # The tasks that are worked on, and whether a person has stopped them.
        self._working: dict[str, bool] = {}

    async def execute(self, context: A2ARequest, event_queue: EventQueue) -> None:
        kept = [entry.event for entry in await self._log.read(context.task_id or "")]
        request = request_context(context, await self._log.task(context.task_id or "") if kept else None)
        if request.user is not None:
            logger.info("%s: task %s is asked by %s", request.trace_id, request.task_id, request.user)
        recorder = self._recorder(request, self._state(request, kept), event_queue)
        told = decode_updates(self._agent.name, kept)
        match _said_to_forms(told, context.message):
            case AskAgain(forms):
                async with recorder:
                    recorder.put(InputRequired(forms))
                return
            case Resume(form, answer):
                run = self._agent.run(Resumption(form, answer, told), request)
            case None:
                run = self._agent.run(question_of(context.message), request)
        await self._work(run, request, recorder, event_queue)

    async def _work(self, run: Run, request: RequestContext, recorder: Recorder, event_queue: EventQueue) -> None:
        self._working[request.task_id] = False
        try:
            async with self._conversations.turn(request.context_id, request.task_id) as turn, recorder:
                await recorder.begin()
                try:
                    async for event in run.events():
                        recorder.put(event)
                        turn.waits = isinstance(event, InputRequired)
                except asyncio.CancelledError:
                    recorder.put(*self._broken_off(run, request.task_id))
                    await self._abandon(run.interrupted, request)
                    raise
        except asyncio.CancelledError:
            if not recorder.entered:  # it was still waiting for its turn
                async with recorder:
                    recorder.put(*self._broken_off(run, request.task_id))
            raise
        except Exception as error:  # whatever it was, it becomes a sentence
            logger.exception("%s: the run broke off", request.trace_id)
            await self._end(request, error, event_queue)
        finally:
            del self._working[request.task_id]

    async def cancel(self, context: A2ARequest, event_queue: EventQueue) -> None:
        """A running task is cancelled through `execute`; one that waits for a person has nobody else to end it."""
        task = await self._log.task(context.task_id or "")
        if task is None or task.status.state not in PARKED_STATES:
            if context.task_id in self._working:
                self._working[context.task_id] = True
            return
        request = request_context(context, task)
        kept = [entry.event for entry in await self._log.read(request.task_id)]
        updates = closing(self._state(request, ()), kept, Canceled())
        await self._tell(await self._log.end_waiting(request.task_id, updates), event_queue)
        events = events_so_far(self._agent.name, kept)
        await self._abandon(InterruptedRun(request.context_id, request.task_id, events), request)
        self._conversations.end_waiting(request.context_id)

    async def release(self, run: InterruptedRun, for_good: bool) -> None:
        """A run that nobody works on any more was ended: its conversation goes on without it."""
        await self._agent.release(run, for_good=for_good)
        self._conversations.end_waiting(run.context_id)

    async def _abandon(self, run: InterruptedRun, request: RequestContext) -> None:
        try:
            await self._agent.abandon(run, request)
        except Exception:  # the end is out; the next turn says of calls without a result that it does not know it
            logger.exception("%s: the conversation could not be completed", request.trace_id)

    async def _end(self, request: RequestContext, error: Exception, queue: EventQueue) -> None:
        """End a run whose events could not all be kept: what was shown of it is closed, and nothing else."""
        failure = failure_of(error)
        kept = [entry.event for entry in await self._log.read(request.task_id)]
        updates = closing(self._state(request, ()), kept, Failed(failure.code, failure.sentence))
        await self._tell(await self._log.append(request.task_id, updates), queue)

    def _broken_off(self, run: Run, task_id: str) -> Iterator[Event]:
        """A person cancels through `cancel`; nobody else stops a run but a server that shuts down."""
        return run.canceled() if self._working[task_id] else run.failed(StoppedError(self._agent.name))

    def _recorder(self, request: RequestContext, state: StreamState, queue: EventQueue) -> Recorder:
        tell = functools.partial(self._tell, queue=queue)
        if request.delegated:
            return Recorder(self._log, state, lambda: self._interval, tell, to_people=False)
        return Recorder(self._log, state, lambda: joining_interval(self._interval, len(self._working)), tell)

    def _state(self, request: RequestContext, kept: Iterable[WireEvent]) -> StreamState:
        state = StreamState(request.task_id, request.context_id, request.trace_id, self._agent.name)
        recall(state, kept)
        return state

    @staticmethod
    async def _tell(entries: Iterable[Entry], queue: EventQueue) -> None:
        for entry in entries:
            if _is_of_its_life(entry):
                await queue.enqueue_event(entry.event)


def _is_of_its_life(entry: Entry) -> bool:
    return isinstance(entry.event, TaskStatusUpdateEvent) or entry.event.artifact.name in _CLOSING_ARTIFACTS


def _said_to_forms(told: Sequence[Event], message: Message | None) -> Resume | AskAgain | None:
    """What a message says to the forms that are open; None if none are."""
    match told[-1:]:
        case [InputRequired(forms)]:
            return understand(forms, reply_of(message))
        case _:
            return None
