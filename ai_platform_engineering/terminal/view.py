"""The state of a run in a terminal: a transcript, which is append-only and printed once, and the live part below it.

Values only; the fold over events is in `reducer`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from ai_platform_engineering.events import Ending, PlanStep, PlanUpdated

CallState = Literal["running", "ok", "failed"]
SETTLED: Final = frozenset({"completed", "failed"})
"""The final states of a step."""


@dataclass(frozen=True, slots=True)
class TerminalNotice:
    """A message of the terminal itself, for example about the connection."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    agent: str
    name: str
    call_id: str
    state: CallState = "running"
    reason: str = ""
    skill: str = ""
    """The skill that the call reads, if any."""


@dataclass(frozen=True, slots=True)
class Delegation:
    agent: str
    call_id: str
    state: CallState = "running"
    reason: str = ""
    tools: tuple[ToolCall, ...] = ()


Call = ToolCall | Delegation


@dataclass(frozen=True, slots=True)
class PartialMessage:
    """The unfinished last block of a message that is still streaming."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class MessageText:
    """Finished Markdown blocks of a message."""

    message_id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallStarted:
    call: Call


@dataclass(frozen=True, slots=True)
class CallFinished:
    """A call ended. `inner`: it is shown as part of its delegation."""

    call: Call
    inner: bool = False


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The plan changed: its new steps, and the steps whose status changed."""

    title: str
    new: tuple[PlanStep, ...]
    changed: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class PlanShown:
    """Steps of the plan that are new or changed since the plan was last printed.

    `title` is None when the steps continue a plan that was printed above the answer.
    """

    title: str | None
    steps: tuple[PlanStep, ...]


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run ended, or paused for input. `waiting` are the calls that wait for it and were not reported before."""

    ending: Ending
    waiting: tuple[Call, ...] = ()


TranscriptEntry = MessageText | CallStarted | CallFinished | PlanChanged | PlanShown | TerminalNotice | RunEnded


@dataclass(frozen=True, slots=True)
class View:
    transcript: tuple[TranscriptEntry, ...] = ()
    partial_messages: tuple[PartialMessage, ...] = ()
    calls: tuple[Call, ...] = ()
    plan: PlanUpdated | None = None
    plan_is_live: bool = False
    shown_steps: tuple[PlanStep, ...] = ()
    seen_message_ids: frozenset[str] = field(default_factory=frozenset)
    waiting: tuple[Call, ...] = ()
    ending: Ending | None = None


def closing_steps(view: View) -> tuple[PlanStep, ...]:
    """The steps without an agent that remain after all agent steps were printed: the work on the answer."""
    steps = view.plan.steps if view.plan else ()
    shown = [step for step in steps if step in view.shown_steps and step.status in SETTLED]
    if not shown or any(step.agent and step not in shown for step in steps):
        return ()
    return tuple(step for step in steps if step not in shown)
