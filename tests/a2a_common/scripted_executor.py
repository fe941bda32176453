"""An executor that does what its script says, step by step, through the event log like the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue

from ai_platform_engineering.events import (
    Canceled,
    Event,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    MessageEnded,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.storage.event_log.event_log import EventLog
from ai_platform_engineering.utils.a2a_common.protocol import PARKED_STATES
from ai_platform_engineering.utils.a2a_common.wire import StreamState, WireEvent, begin, encode, metadata_of, recall

CLOSING = frozenset({"working", "final_result", "partial_result", "input_required", "completed", "failed", "canceled"})


class Gate(asyncio.Event):
    """A place in a script where the run waits until the test opens it."""


Step = Event | Gate | Exception
Script = Sequence[Step]

ANSWER: tuple[Event, ...] = (
    ToolStarted("supervisor", "version", "call-1"),
    ToolFinished("supervisor", "version", "call-1", ok=True),
    TextDelta("supervisor", "m1", "Version "),
    TextDelta("supervisor", "m1", "2.11 🔧"),
    MessageEnded("supervisor", "m1"),
    FinalResult("Version 2.11 🔧", "m1"),
)
FORM = InputRequired((Form("form-1", "Which app?", (FormField("app"),)),))


@dataclass
class ScriptedExecutor(AgentExecutor):
    """`script` gives the steps for each turn of a task: the message's text and the number of the turn (from 0)."""

    log: EventLog
    script: Callable[[str, int], Script] = field(default=lambda text, turn: ANSWER)
    running: int = 0

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.running += 1
        state = await self._state(context)
        try:
            await self._tell(state, begin(state), event_queue)
            for step in self.script(context.get_user_input(), state.asked):
                match step:
                    case Gate():
                        await step.wait()
                    case Exception():
                        raise step
                    case _:
                        await self._tell(state, encode(state, step), event_queue)
        except asyncio.CancelledError:
            await self._tell(state, encode(state, Canceled()), event_queue)
            raise
        finally:
            self.running -= 1

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        if await self.log.state(context.task_id or "") in PARKED_STATES and not self.running:
            state = await self._state(context)
            await self._tell(state, encode(state, Canceled()), event_queue)

    async def _state(self, context: RequestContext) -> StreamState:
        state = StreamState(context.task_id or "", context.context_id or "", trace_id="trace")
        recall(state, [entry.event for entry in await self.log.read(state.task_id)])
        return state

    async def _tell(self, state: StreamState, events: list[WireEvent], event_queue: EventQueue) -> None:
        await self.log.append(state.task_id, events)
        for event in events:
            if metadata_of(event).fields["event"].string_value in CLOSING:
                await event_queue.enqueue_event(event)
