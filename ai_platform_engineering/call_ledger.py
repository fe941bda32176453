"""The call ledger: tracks which delegations and tool calls of a run are open.

Every start gets exactly one end with the same call id. A call without an end of its own is closed when its parent or
the run ends. The translation of a graph's stream, the decoder of a remote stream and the endings of interrupted tasks
use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ai_platform_engineering.events import AgentFinished, AgentStarted, Event, ToolFinished, ToolStarted


@dataclass(frozen=True, slots=True)
class LedgerCall:
    """A delegation (`tool` is None) or a tool call, with the name of the skill that it reads, if any."""

    call_id: str
    agent: str
    tool: str | None = None
    parent_call_id: str | None = None
    plan_step_id: str | None = None
    skill: str | None = None

    @classmethod
    def of(cls, start: AgentStarted | ToolStarted) -> LedgerCall:
        tool, skill = (start.tool, start.skill) if isinstance(start, ToolStarted) else (None, None)
        return cls(start.call_id, start.agent, tool, start.parent_call_id, start.plan_step_id, skill)

    def started(self) -> AgentStarted | ToolStarted:
        if self.tool is None:
            return AgentStarted(self.agent, self.call_id, self.parent_call_id, self.plan_step_id)
        return ToolStarted(self.agent, self.tool, self.call_id, self.parent_call_id, self.plan_step_id, self.skill)

    def finished(self, ok: bool, reason: str | None = None) -> AgentFinished | ToolFinished:
        shown = None if ok else reason
        if self.tool is None:
            return AgentFinished(self.agent, self.call_id, ok, shown, self.parent_call_id, self.plan_step_id)
        return ToolFinished(
            self.agent, self.tool, self.call_id, ok, shown, self.parent_call_id, self.plan_step_id, self.skill
        )


class CallLedger:
    """Open calls in the order they started. One per run."""

    def __init__(self) -> None:
        self._open: dict[str, LedgerCall] = {}
        self._seen: set[str] = set()

    def __getitem__(self, call_id: str) -> LedgerCall:
        return self._open[call_id]

    def get(self, call_id: str) -> LedgerCall | None:
        return self._open.get(call_id)

    @property
    def seen(self) -> frozenset[str]:
        """The ids of all calls that have started."""
        return frozenset(self._seen)

    def has_ended(self, call_id: str) -> bool:
        return call_id in self._seen and call_id not in self._open

    def position(self, call_id: str) -> int:
        """The number of open calls that started before this one."""
        return [*self._open].index(call_id) if call_id in self._open else len(self._open)

    def record(self, event: Event) -> None:
        """Track a start or an end that has been emitted already. Other events have no effect."""
        match event:
            case AgentStarted() | ToolStarted():
                self._open[event.call_id] = LedgerCall.of(event)
                self._seen.add(event.call_id)
            case AgentFinished() | ToolFinished():
                self._open.pop(event.call_id, None)
            case _:
                pass

    def start(self, call: LedgerCall) -> Iterator[AgentStarted | ToolStarted]:
        """Emit the start of a call once. LangGraph repeats starts on a resume."""
        if call.call_id not in self._seen:
            self._seen.add(call.call_id)
            self._open[call.call_id] = call
            yield call.started()

    def finish(self, call_id: str, ok: bool, reason: str | None = None) -> Iterator[AgentFinished | ToolFinished]:
        """Emit the end of a call, after the ends of its open children."""
        if call_id in self._open:
            for child in [call for call in self._open.values() if call.parent_call_id == call_id]:
                yield from self.finish(child.call_id, False, reason or "stopped")
            yield self._open.pop(call_id).finished(ok, reason)

    def close(self, reason: str | None, *, ok: bool = False) -> Iterator[AgentFinished | ToolFinished]:
        """Emit the ends of all open calls, the last started first."""
        for call_id in reversed([*self._open]):
            yield from self.finish(call_id, ok, reason)
