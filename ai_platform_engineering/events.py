"""The events of a run, as a closed union of frozen values.

A run of the supervisor, or of one agent, is a sequence of these. Surfaces (A2A, terminal, Slack, web page) are computed
from that sequence and from nothing else. No I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

SUPERVISOR = "supervisor"

StepStatus = Literal["pending", "in_progress", "completed", "failed"]
FieldType = Literal["text", "multiline", "number", "boolean", "select", "multiselect", "url", "email"]


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One line of the plan. `id` stays the same while the plan changes around it."""

    id: str
    title: str
    status: StepStatus
    order: int
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class PlanUpdated:
    steps: tuple[PlanStep, ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class AgentStarted:
    """A delegation begins. `agent` is the agent that was asked, never the name of the delegating tool."""

    agent: str
    call_id: str
    parent_call_id: str | None = None
    plan_step_id: str | None = None


@dataclass(frozen=True, slots=True)
class AgentFinished:
    agent: str
    call_id: str
    ok: bool
    reason: str | None = None
    parent_call_id: str | None = None
    plan_step_id: str | None = None


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """`agent` calls a tool. `skill` is the name of the skill that the call reads, if it reads one."""

    agent: str
    tool: str
    call_id: str
    parent_call_id: str | None = None
    plan_step_id: str | None = None
    skill: str | None = None


@dataclass(frozen=True, slots=True)
class ToolFinished:
    agent: str
    tool: str
    call_id: str
    ok: bool
    reason: str | None = None
    parent_call_id: str | None = None
    plan_step_id: str | None = None
    skill: str | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a message, as the model writes it. `supersedes` names a message that a crash cut off."""

    agent: str
    message_id: str
    text: str
    parent_call_id: str | None = None
    supersedes: str | None = None


@dataclass(frozen=True, slots=True)
class MessageEnded:
    agent: str
    message_id: str
    parent_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class FieldRules:
    """Constraints on a value beyond its type: bounds of numbers, length and pattern of texts."""

    minimum: float | None = None
    maximum: float | None = None
    integer: bool = False
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form. `value` is the entered or proposed value, `error` the reason why it was rejected."""

    field_name: str
    field_type: FieldType = "text"
    field_description: str = ""
    field_values: tuple[str, ...] | None = None
    default_value: Any = None
    required: bool = True
    value: Any = None
    rules: FieldRules | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Form:
    """A question to a person. For an approval, `action_requests` has the tool calls that wait for it."""

    form_id: str
    title: str
    fields: tuple[FormField, ...] = ()
    description: str = ""
    response: str = ""
    agent: str | None = None
    action_requests: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class InputRequired:
    forms: tuple[Form, ...]


@dataclass(frozen=True, slots=True)
class FinalResult:
    """The whole answer, and the id of the message that streamed it. `limit` names the limit that cut the work short.
    `budget_warning` is a sentence for a person whose budget is nearly used up."""

    text: str
    answer_message_id: str
    limit: str | None = None
    budget_warning: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The run failed. `message` is a sentence that a person can act on, never an exception's text."""

    code: str
    message: str
    partial: str | None = None


@dataclass(frozen=True, slots=True)
class Canceled:
    """The run was canceled. `message` names its completed calls and those with an unknown outcome, if any."""

    by: str = "user"
    message: str = ""


Event = (
    PlanUpdated
    | AgentStarted
    | AgentFinished
    | ToolStarted
    | ToolFinished
    | TextDelta
    | MessageEnded
    | InputRequired
    | FinalResult
    | Failed
    | Canceled
)
"""Every event of a run."""

Ending = InputRequired | FinalResult | Failed | Canceled
"""The events a stream may end with; exactly one of them, and last."""
