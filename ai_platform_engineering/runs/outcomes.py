"""What a run had done when it ended without an answer: the calls that completed, and those whose outcome is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    InputRequired,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.runs.plan import WORKFLOW_TOOL
from ai_platform_engineering.runs.skill_calls import SKILL_TOOLS

MAX_NAMED: Final = 8
"""Calls that a sentence names; it counts the others."""

NOTHING_RECORDED: Final = "No tool call was recorded. Ask again, but check first if it was to change something."
START_OVER: Final = "Ask again to start over."

_WITHOUT_OUTCOME: Final = frozenset({"request_user_input", WORKFLOW_TOOL}) | SKILL_TOOLS
"""Tools that only show people a form, or read instructions."""

_Started = AgentStarted | ToolStarted


@dataclass(frozen=True, slots=True)
class InterruptedRun:
    """A run that ended without an answer. `events` are those before its end.

    `question` and `ending`, the sentence about the end, are there for a run whose process was killed: nothing else has
    them.
    """

    context_id: str
    task_id: str
    events: Sequence[Event] = ()
    question: str = ""
    ending: str = ""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Calls in the order in which their delegations started.

    `waiting` are those that waited for a person, so they were not made.
    """

    completed: tuple[_Started, ...] = ()
    unknown: tuple[_Started, ...] = ()
    waiting: tuple[_Started, ...] = ()


def outcomes_of(events: Sequence[Event], *, within: str | None = None) -> Outcomes:
    """The outcomes of a run so far, or of what happened inside its delegation `within`.

    A delegation stands for itself only where none of its tools says more.
    """
    started: dict[str, _Started] = {}
    ended: dict[str, bool] = {}
    for event in events:
        match event:
            case ToolStarted(tool=tool) if tool in _WITHOUT_OUTCOME:
                pass
            case AgentStarted() | ToolStarted():
                started[event.call_id] = event
            case AgentFinished() | ToolFinished():
                ended[event.call_id] = event.ok
            case _:
                pass
    places = {call_id: place for place, call_id in enumerate(started)}
    inside = sorted(
        (call for call in started.values() if within is None or call.parent_call_id == within),
        key=lambda call: (places.get(call.parent_call_id or call.call_id, 0), places[call.call_id]),
    )
    completed = [call for call in inside if ended.get(call.call_id)]
    under_way = [call for call in inside if call.call_id not in ended]
    is_parked = bool(events) and isinstance(events[-1], InputRequired)
    in_flight = _telling(under_way)
    return Outcomes(
        completed=_telling(completed),
        unknown=() if is_parked else in_flight,
        waiting=in_flight if is_parked else (),
    )


def report(outcomes: Outcomes) -> str:
    """The outcomes for people; empty if nothing was done, and nothing may have been."""
    if not (outcomes.completed or outcomes.unknown):
        return ""
    parts = []
    if outcomes.completed:
        parts.append(f"Completed: {_named(map(_label, outcomes.completed))}.")
    if outcomes.unknown:
        completed_by = {call.agent for call in outcomes.completed}
        parts.append(f"Outcome unknown: {_named(_label(call, completed_by) for call in outcomes.unknown)}.")
    if outcomes.waiting:
        parts.append(f"Not done, because it waited for an answer: {_named(map(_label, outcomes.waiting))}.")
    return " ".join([*parts, "Check before asking again."])


def tool_names(calls: Iterable[_Started]) -> str:
    """The calls for a model that knows whose they are."""
    return _named(call.tool if isinstance(call, ToolStarted) else call.agent for call in calls)


def explained(ending: Failed | Canceled, events: Sequence[Event], otherwise: str = "") -> Failed | Canceled:
    """The ending with the outcomes in its message, or with `otherwise` if there are none."""
    details = report(outcomes_of(events)) or otherwise
    return replace(ending, message=f"{ending.message} {details}".strip()) if details else ending


def _telling(calls: Sequence[_Started]) -> tuple[_Started, ...]:
    parents = {call.parent_call_id for call in calls}
    return tuple(call for call in calls if call.call_id not in parents)


def _label(call: _Started, completed_by: Iterable[str] = ()) -> str:
    agent = call.agent.title()
    if isinstance(call, AgentStarted):
        return f"the rest of {agent}'s work" if call.agent in completed_by else agent
    return call.tool if call.agent == SUPERVISOR else f"{agent} {call.tool}"


def _named(names: Iterable[str]) -> str:
    counted = [name if times == 1 else f"{name} ({times} times)" for name, times in Counter(names).items()]
    more = len(counted) - MAX_NAMED
    return ", ".join(counted) if more <= 0 else f"{', '.join(counted[:MAX_NAMED])} and {more} more"
