"""The outcomes of a run that ended without an answer: completed calls, and calls whose outcome is unknown."""

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
"""Maximum number of calls that a sentence names. The others are counted."""

NOTHING_RECORDED: Final = "No tool call was recorded. Ask again, but check first if it was to change something."
START_OVER: Final = "Ask again to start over."

_WITHOUT_OUTCOME: Final = frozenset({"request_user_input", WORKFLOW_TOOL}) | SKILL_TOOLS
"""Tools that only show people a form, or read instructions."""

_Started = AgentStarted | ToolStarted


@dataclass(frozen=True, slots=True)
class InterruptedRun:
    """A run that ended without an answer. `events` are those before its end.

    `question` and `ending` (the sentence about the end) are set if the process was killed, because then no checkpoint
    has them.
    """

    context_id: str
    task_id: str
    events: Sequence[Event] = ()
    question: str = ""
    ending: str = ""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Calls in the order in which their delegations started. Those in `waiting` were not made: they needed a person."""

    completed: tuple[_Started, ...] = ()
    unknown: tuple[_Started, ...] = ()
    waiting: tuple[_Started, ...] = ()


def outcomes_of(events: Sequence[Event], *, within: str | None = None) -> Outcomes:
    """The outcomes of a run so far, or those inside its delegation `within`.

    A delegation is listed itself only if none of its calls is listed.
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
    positions = {call_id: position for position, call_id in enumerate(started)}
    inside = sorted(
        (call for call in started.values() if within is None or call.parent_call_id == within),
        key=lambda call: (positions.get(call.parent_call_id or call.call_id, 0), positions[call.call_id]),
    )
    completed = [call for call in inside if ended.get(call.call_id)]
    in_flight = _without_parents([call for call in inside if call.call_id not in ended])
    waits_for_person = bool(events) and isinstance(events[-1], InputRequired)
    return Outcomes(
        completed=_without_parents(completed),
        unknown=() if waits_for_person else in_flight,
        waiting=in_flight if waits_for_person else (),
    )


def report(outcomes: Outcomes) -> str:
    """The outcomes in words; empty if no call completed and no outcome is unknown."""
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
    """The calls in words, without their agents."""
    return _named(call.tool if isinstance(call, ToolStarted) else call.agent for call in calls)


def explained(ending: Failed | Canceled, events: Sequence[Event], otherwise: str = "") -> Failed | Canceled:
    """The ending with the outcomes added to its message, or with `otherwise` if there are none."""
    details = report(outcomes_of(events)) or otherwise
    return replace(ending, message=f"{ending.message} {details}".strip()) if details else ending


def _without_parents(calls: Sequence[_Started]) -> tuple[_Started, ...]:
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
