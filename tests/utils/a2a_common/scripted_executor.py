"""An executor that does what its script says, step by step, through the event log like the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
from ai_platform_engineering.utils.a2a_common.protocol import WAITING_STATES
from ai_platform_engineering.utils.a2a_common.server.incoming import question_of
from ai_platform_engineering.utils.a2a_common.server.work import Assignment
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode, restore


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
class ScriptedExecutor:
    """`script` gives the steps for each turn of a task: the message's text and the number of the turn (from 0)."""

    log: EventLog
    script: Callable[[str, int], Script] = field(default=lambda text, turn: ANSWER)
    running: int = 0
    resumable: bool = False

    async def execute(self, assignment: Assignment) -> bool:
        self.running += 1
        state = await self._state(assignment.task_id, assignment.context_id)
        step: Step | None = None
        try:
            await self.log.append(state.task_id, begin(state), assignment.epoch)
            for step in self.script(question_of(assignment.request.message), state.questions):
                match step:
                    case Gate():
                        await step.wait()
                    case Exception():
                        raise step
                    case _:
                        await self.log.append(state.task_id, encode(state, step), assignment.epoch)
        except asyncio.CancelledError:
            if not assignment.handed_over:
                await self.log.append(state.task_id, encode(state, Canceled()), assignment.epoch)
            raise
        finally:
            self.running -= 1
        return isinstance(step, InputRequired)

    async def cancel(self, task_id: str, auth_token: str | None = None) -> None:
        task = await self.log.task(task_id)
        if task is not None and task.status.state in WAITING_STATES and not self.running:
            state = await self._state(task_id, task.context_id)
            await self.log.append(task_id, encode(state, Canceled()))

    async def _state(self, task_id: str, context_id: str) -> StreamState:
        state = StreamState(task_id, context_id, trace_id="trace")
        restore(state, [entry.event for entry in await self.log.read(task_id)])
        return state
