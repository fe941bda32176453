"""Which calls of a stream have begun and not ended, so that a broken stream can still end every one of them."""

from __future__ import annotations

from ai_platform_engineering.events import AgentFinished, AgentStarted, Event, ToolFinished, ToolStarted


class OpenCalls:
    def __init__(self) -> None:
        self._started: dict[str, AgentStarted | ToolStarted] = {}

    def note(self, event: Event) -> None:
        match event:
            case AgentStarted() | ToolStarted():
                self._started[event.call_id] = event
            case AgentFinished() | ToolFinished():
                self._started.pop(event.call_id, None)
            case _:
                pass

    def close(self, ok: bool, reason: str | None = None) -> list[Event]:
        """The ends of all open calls, the innermost first."""
        ends = [finished(start, ok, reason) for start in reversed(self._started.values())]
        self._started.clear()
        return ends


def finished(start: AgentStarted | ToolStarted, ok: bool, reason: str | None = None) -> Event:
    match start:
        case AgentStarted():
            return AgentFinished(start.agent, start.call_id, ok, reason, start.parent_call_id, start.plan_step_id)
        case ToolStarted():
            return ToolFinished(
                start.agent,
                start.tool,
                start.call_id,
                ok,
                reason,
                start.parent_call_id,
                start.plan_step_id,
                start.skill,
            )
