"""The call ledger: the one place that knows which delegations and tools of a run are open.

Every start gets exactly one end with the same call id. A call that is never told to end is closed when its parent
ends or when the run does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ai_platform_engineering.events import AgentFinished, AgentStarted, ToolFinished, ToolStarted


@dataclass(frozen=True, slots=True)
class Call:
    """A delegation (`tool` is None) or a tool call, with the skill that it reads, if any."""

    call_id: str
    agent: str
    tool: str | None = None
    parent_call_id: str | None = None
    plan_step_id: str | None = None
    skill: str | None = None

    def started(self) -> AgentStarted | ToolStarted:
        if self.tool is None:
            return AgentStarted(self.agent, self.call_id, self.parent_call_id, self.plan_step_id)
        return ToolStarted(self.agent, self.tool, self.call_id, self.parent_call_id, self.plan_step_id, self.skill)

    def finished(self, ok: bool, reason: str | None) -> AgentFinished | ToolFinished:
        shown = None if ok else reason
        if self.tool is None:
            return AgentFinished(self.agent, self.call_id, ok, shown, self.parent_call_id, self.plan_step_id)
        return ToolFinished(
            self.agent, self.tool, self.call_id, ok, shown, self.parent_call_id, self.plan_step_id, self.skill
        )


def call_of(start: AgentStarted | ToolStarted, parent: str | None, plan_step_id: str | None) -> Call:
    """The call that an event announces, below `parent` and for the step of the plan with this id."""
    match start:
        case ToolStarted():
            return Call(start.call_id, start.agent, start.tool, parent, plan_step_id, start.skill)
        case AgentStarted():
            return Call(start.call_id, start.agent, None, parent, plan_step_id)


class CallLedger:
    """Open calls in the order they started. One per run."""

    def __init__(self) -> None:
        self._open: dict[str, Call] = {}
        self._seen: set[str] = set()

    def __getitem__(self, call_id: str) -> Call:
        return self._open[call_id]

    def get(self, call_id: str) -> Call | None:
        return self._open.get(call_id)

    def place(self, call_id: str) -> int:
        """How many of the open calls began before this one."""
        return [*self._open].index(call_id) if call_id in self._open else len(self._open)

    def recall(self, event: AgentStarted | ToolStarted | AgentFinished | ToolFinished) -> None:
        """Know of a start or an end that was announced before."""
        if isinstance(event, AgentStarted | ToolStarted):
            self._open[event.call_id] = call_of(event, event.parent_call_id, event.plan_step_id)
            self._seen.add(event.call_id)
        else:
            self._open.pop(event.call_id, None)

    def start(self, call: Call) -> Iterator[AgentStarted | ToolStarted]:
        """Announce a call once, however often the stream repeats its start (it does so on a resume)."""
        if call.call_id not in self._seen:
            self._seen.add(call.call_id)
            self._open[call.call_id] = call
            yield call.started()

    def finish(self, call_id: str, ok: bool, reason: str | None = None) -> Iterator[AgentFinished | ToolFinished]:
        """End a call, and first what is still open below it."""
        if call_id in self._open:
            yield from self._close_children(call_id, reason or "stopped")
            yield self._open.pop(call_id).finished(ok, reason)

    def close(self, reason: str) -> Iterator[AgentFinished | ToolFinished]:
        """End everything that is open, innermost first."""
        for call_id in [*self._open]:
            yield from self.finish(call_id, False, reason)

    def _close_children(self, call_id: str, reason: str) -> Iterator[AgentFinished | ToolFinished]:
        for child in [call for call in self._open.values() if call.parent_call_id == call_id]:
            yield from self.finish(child.call_id, False, reason)
