"""The ends of tasks that have no live run: stopped, killed, canceled while waiting, expired.

A run that is alive ends itself. For all other tasks the stored events show what is open: this module closes it and
writes the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self

from a2a.types.a2a_pb2 import Task, TaskState, TaskStatusUpdateEvent

from ai_platform_engineering.call_ledger import CallLedger
from ai_platform_engineering.events import (
    AgentFinished,
    Canceled,
    Event,
    Failed,
    InputRequired,
    MessageEnded,
    PlanUpdated,
    TextDelta,
)
from ai_platform_engineering.runs.outcomes import NOTHING_RECORDED, InterruptedRun, explained
from ai_platform_engineering.storage.event_log.event_log import EventLog, SupersededError, TaskEndedError
from ai_platform_engineering.storage.event_log.task_fold import ends_task, suspends_task
from ai_platform_engineering.utils.a2a_common.codec.decoder import decode_updates
from ai_platform_engineering.utils.a2a_common.codec.labels import handed_over, stopped
from ai_platform_engineering.utils.a2a_common.codec.parts import text_of
from ai_platform_engineering.utils.a2a_common.protocol import WAITING_STATES
from ai_platform_engineering.utils.a2a_common.request_context import is_delegated
from ai_platform_engineering.utils.a2a_common.server.incoming import question_of
from ai_platform_engineering.utils.a2a_common.wire import (
    StreamState,
    WireEvent,
    encode,
    hand_over,
    metadata_of,
    restore,
)


@dataclass(frozen=True, slots=True)
class EndedTask:
    """A task that was ended here, and its run as the conversation needs it."""

    run: InterruptedRun
    delegated: bool
    """A supervisor asked: no later message comes to this conversation."""


class TaskEndings:
    """Writes the ends of tasks of the server of `agent`."""

    def __init__(self, log: EventLog, agent: str) -> None:
        self._log = log
        self._agent = agent

    async def end(
        self,
        task_id: str,
        ending: Failed | Canceled,
        *,
        otherwise: str = "",
        trace_id: str = "",
        epoch: int | None = None,
    ) -> EndedTask | None:
        """End a task, unless it has ended. The end names completed calls, or says `otherwise` if there are none.

        `trace_id` is for a task without events: the others carry theirs. `epoch` is of the claim, if the process that
        runs the task ends it.
        """
        stored = await _StoredTask.read(self._log, task_id, self._agent, trace_id)
        if stored is None or stored.ended:
            return None
        updates = stored.closing(ending, otherwise)
        try:
            await self._log.append(task_id, updates, epoch)
        except (TaskEndedError, SupersededError):  # by another writer, since it was read
            return None
        return stored.ended_by(updates)

    async def end_waiting(self, task_id: str, ending: Failed | Canceled, *, otherwise: str = "") -> EndedTask | None:
        """End a task that waits for a person, unless it was answered or has ended meanwhile."""
        stored = await _StoredTask.read(self._log, task_id, self._agent)
        if stored is None:
            return None
        updates = stored.closing(ending, otherwise)
        return stored.ended_by(updates) if await self._log.end_waiting(task_id, updates) else None

    async def stop(self, task_id: str) -> EndedTask | None:
        """End a task whose server stopped. One that waits for a person goes on waiting: its form is shown again."""
        stored = await _StoredTask.read(self._log, task_id, self._agent)
        if stored is None or stored.ended:
            return None
        if stored.task.status.state not in WAITING_STATES:
            return await self.end(task_id, Failed("stopped", stopped(self._agent)), otherwise=NOTHING_RECORDED)
        # An answer was accepted, but its run had not begun.
        with suppress(TaskEndedError):
            await self._log.append(task_id, stored.last_question())
        return None

    async def hand_over(self, task_id: str, epoch: int | None = None) -> None:
        """End the streams of a task with a status: it continues on another server, or when this one is back."""
        stored = await _StoredTask.read(self._log, task_id, self._agent)
        if stored is None or stored.ended:
            return
        submitted = TaskState.TASK_STATE_SUBMITTED
        state = submitted if stored.task.status.state == submitted else TaskState.TASK_STATE_WORKING
        with suppress(TaskEndedError, SupersededError):
            await self._log.append(task_id, hand_over(stored.state, state, handed_over(self._agent)), epoch)
        self._log.end_following(task_id)


@dataclass(frozen=True, slots=True)
class _StoredTask:
    task: Task
    updates: list[WireEvent]
    state: StreamState
    """The state of the stream after `updates`."""

    @classmethod
    async def read(cls, log: EventLog, task_id: str, agent: str, trace_id: str = "") -> Self | None:
        task = await log.task(task_id)
        if task is None:
            return None
        updates = [entry.event for entry in await log.read(task_id)]
        trace_id = metadata_of(updates[0]).fields["trace_id"].string_value if updates else trace_id
        state = StreamState(task_id, task.context_id, trace_id, agent)
        restore(state, updates)
        return cls(task, updates, state)

    @property
    def ended(self) -> bool:
        return bool(self.updates) and ends_task(self.updates[-1])

    def closing(self, ending: Failed | Canceled, otherwise: str) -> list[WireEvent]:
        """The updates that are missing to make this a whole run that ends with `ending`."""
        events = self.events()
        missing = [*_missing(events, canceled=isinstance(ending, Canceled)), explained(ending, events, otherwise)]
        return [update for event in missing for update in encode(self.state, event)]

    def events(self) -> list[Event]:
        """The events of the run. Questions that were answered are left out, an open one is last."""
        events = decode_updates(self.state.agent, self.updates)
        waits = bool(self.updates) and suspends_task(self.updates[-1])
        return events if waits else [event for event in events if not isinstance(event, InputRequired)]

    def last_question(self) -> list[WireEvent]:
        """The last form once more; empty if there is none."""
        events = decode_updates(self.state.agent, self.updates)
        questions = [event for event in events if isinstance(event, InputRequired)]
        return encode(self.state, questions[-1]) if questions else []

    def ended_by(self, updates: Sequence[WireEvent]) -> EndedTask:
        first = next(iter(self.task.history), None)
        sentences = [text_of(end.status.message.parts) for end in updates if isinstance(end, TaskStatusUpdateEvent)]
        run = InterruptedRun(
            self.task.context_id,
            self.task.id,
            self.events(),
            question=question_of(first) if first else "",
            ending=next(iter(sentences), ""),
        )
        return EndedTask(run, delegated=first is not None and is_delegated(first))


def _missing(events: Iterable[Event], *, canceled: bool) -> list[Event]:
    """The ends of messages and calls that are open, and the plan that follows from them."""
    ledger = CallLedger()
    messages: dict[str, MessageEnded] = {}
    plan: PlanUpdated | None = None
    for event in events:
        ledger.record(event)
        match event:
            case TextDelta():
                messages[event.message_id] = MessageEnded(event.agent, event.message_id, event.parent_call_id)
            case MessageEnded():
                messages.pop(event.message_id, None)
            case PlanUpdated():
                plan = event
            case _:
                pass
    ends = [*ledger.close("canceled" if canceled else "stopped")]
    # An interrupted step has failed; a step that a person stopped is merely unfinished.
    return [*messages.values(), *ends, *([] if canceled else _failed_steps(plan, ends))]


def _failed_steps(plan: PlanUpdated | None, ends: Iterable[Event]) -> list[Event]:
    """The plan with the steps of interrupted agents failed, if that changes it."""
    if plan is None:
        return []
    interrupted = {end.plan_step_id for end in ends if isinstance(end, AgentFinished)}
    steps = tuple(replace(step, status="failed") if step.id in interrupted else step for step in plan.steps)
    return [] if steps == plan.steps else [PlanUpdated(steps, plan.title)]
