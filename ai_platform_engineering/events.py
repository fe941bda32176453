"""The event vocabulary: everything a run can tell its callers, as a small closed union of values.

One run of the supervisor, or of one agent, is a sequence of these. Surfaces (A2A, terminal, Slack, web page)
are projections of that sequence; nothing else carries information about a run. No I/O lives here.
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
    """A tool runs; `agent` is who runs it. `skill` is the name of the skill that the call reads, if it reads one."""

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
    """What a value has to keep to, beyond its type: numbers lie between the bounds, texts have a length and a form."""

    minimum: float | None = None
    maximum: float | None = None
    integer: bool = False
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None


@dataclass(frozen=True, slots=True)
class FormField:
    """One thing to fill in. `value` is what has been entered or is proposed, `error` why it was not accepted."""

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
    """A question to a person. `action_requests` holds the tool calls that wait for approval, if that is what it is."""

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
    """The whole answer, and the id of the message it streamed as. `limit` names the limit that cut the work short."""

    text: str
    answer_message_id: str
    limit: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """The run cannot go on. `message` is a sentence a person can act on, never an exception's text."""

    code: str
    message: str
    partial: str | None = None


@dataclass(frozen=True, slots=True)
class Canceled:
    """The run was stopped. `message` says what it had completed and what has an unknown outcome, if anything."""

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
