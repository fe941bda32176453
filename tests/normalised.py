"""A run without what differs between two equal runs: ids, the cutting of text, and the order of parallel calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    InputRequired,
    MessageEnded,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)


@dataclass(frozen=True)
class NormalCall:
    """A call with everything that happened in it, in order."""

    agent: str
    tool: str | None
    step: str | None
    ok: bool
    reason: str | None
    inside: tuple[Any, ...]
    skill: str | None = None


@dataclass(frozen=True)
class NormalRun:
    """`items` is what the run's own agent said and did, in order; delegations stand where they began."""

    items: tuple[Any, ...]
    steps: tuple[tuple[str, tuple[str, ...]], ...]
    ending: Any


def normalised(events: Sequence[Event]) -> NormalRun:
    ends = {event.call_id: event for event in events if isinstance(event, AgentFinished | ToolFinished)}

    def inside(parent: str | None) -> tuple[Any, ...]:
        items: list[Any] = []
        texts: dict[str, int] = {}
        for event in events:
            match event:
                case AgentStarted() | ToolStarted() if event.parent_call_id == parent:
                    end = ends[event.call_id]
                    tool, skill = (event.tool, event.skill) if isinstance(event, ToolStarted) else (None, None)
                    children = inside(event.call_id)
                    items.append(NormalCall(event.agent, tool, event.plan_step_id, end.ok, end.reason, children, skill))
                case TextDelta() if event.parent_call_id == parent:
                    if event.message_id not in texts:
                        texts[event.message_id] = len(items)
                        items.append("")
                    items[texts[event.message_id]] += event.text
                case MessageEnded() if event.parent_call_id == parent:
                    items.append("end of message")
                case InputRequired(forms) if parent is None:
                    items.append(("asked", tuple(replace(form, form_id="") for form in forms)))
        return tuple(items)

    return NormalRun(inside(None), _steps(events), _ending(events))


def _steps(events: Sequence[Event]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """For each step of the plan, the states it went through: parallel calls change the plan in any order."""
    seen: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, PlanUpdated):
            for step in event.steps:
                states = seen.setdefault(f"{step.id} [{step.agent}] {step.title}", [])
                if not states or states[-1] != step.status:
                    states.append(step.status)
    return tuple((step, tuple(states)) for step, states in seen.items())


def _ending(events: Sequence[Event]) -> Any:
    match events[-1]:
        case FinalResult(text=text, limit=limit):
            return ("final result", text, limit)
        case Failed() | Canceled() as ending:
            return ending
        case other:
            return other
