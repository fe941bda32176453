"""What a terminal shows of one run: facts, which are shown once and stay, and what is still changing.

Facts are only ever added. Values only; the fold over events is in `reducer`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from ai_platform_engineering.events import Ending, PlanStep, PlanUpdated

CallState = Literal["running", "ok", "failed"]
SETTLED: Final = frozenset({"completed", "failed"})
"""The status of a step that does not change any more."""


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the terminal itself has to say, about the connection for example."""

    text: str


@dataclass(frozen=True, slots=True)
class Tool:
    agent: str
    name: str
    call_id: str
    state: CallState = "running"
    reason: str = ""
    skill: str = ""
    """The skill that it reads, if it reads one."""


@dataclass(frozen=True, slots=True)
class Delegation:
    agent: str
    call_id: str
    state: CallState = "running"
    reason: str = ""
    tools: tuple[Tool, ...] = ()


Call = Tool | Delegation


@dataclass(frozen=True, slots=True)
class Speech:
    """The part of a message that is still being written."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Spoke:
    """Whole blocks of a message."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Started:
    call: Call


@dataclass(frozen=True, slots=True)
class Finished:
    """A call ended. `inner` where it belongs to a delegation that shows it."""

    call: Call
    inner: bool = False


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan changed: its new steps and those with another status."""

    title: str
    new: tuple[PlanStep, ...]
    changed: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class PlanShown:
    """Steps of the plan that were not shown like this before; without a title where they go on below an answer."""

    title: str | None
    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """The run's end, for now where it asks for input. `waiting` are the calls that wait and were not told to before."""

    ending: Ending
    waiting: tuple[Call, ...] = ()


Fact = Spoke | Started | Finished | Planned | PlanShown | Notice | Ended


@dataclass(frozen=True, slots=True)
class View:
    facts: tuple[Fact, ...] = ()
    speeches: tuple[Speech, ...] = ()
    calls: tuple[Call, ...] = ()
    plan: PlanUpdated | None = None
    plan_is_live: bool = False
    shown_steps: tuple[PlanStep, ...] = ()
    spoken: frozenset[str] = field(default_factory=frozenset)
    waiting: tuple[Call, ...] = ()
    ending: Ending | None = None


def closing_steps(view: View) -> tuple[PlanStep, ...]:
    """What is left of a plan whose agents are done and were shown: the supervisor's own work on the answer."""
    steps = view.plan.steps if view.plan else ()
    shown = [step for step in steps if step in view.shown_steps and step.status in SETTLED]
    if not shown or any(step.agent and step not in shown for step in steps):
        return ()
    return tuple(step for step in steps if step not in shown)
