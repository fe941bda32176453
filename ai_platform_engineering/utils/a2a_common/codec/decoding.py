"""Decodes single updates of our own agents from their metadata. Unknown kinds and keys are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from a2a.types.a2a_pb2 import Artifact, TaskState, TaskStatus
from google.protobuf.struct_pb2 import Struct

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FinalResult,
    Form,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    StepStatus,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.utils.a2a_common.codec.forms import read_form
from ai_platform_engineering.utils.a2a_common.codec.parts import data_of, text_of

_STEP_STATUSES: dict[str, StepStatus] = {name: name for name in get_args(StepStatus)}


def is_ours(metadata: Struct) -> bool:
    return "event" in metadata.fields and "source_agent" in metadata.fields


def kind_of(metadata: Struct) -> str:
    return _text(metadata, "event")


def decode_artifact(artifact: Artifact) -> Event | None:
    """The event of an artifact update; None if it is only a part of an event, or of an unknown kind."""
    metadata = artifact.metadata
    agent = _text(metadata, "source_agent")
    match kind_of(metadata):
        case "text_delta":
            return _text_delta(artifact)
        case "message_ended":
            return _message_ended(metadata)
        case "tool_started" | "tool_finished" | "agent_started" | "agent_finished" as kind:
            return _call(kind, agent, metadata)
        case "plan_updated":
            return _plan(data_of(artifact.parts))
        case "final_result":
            return FinalResult(
                text=text_of(artifact.parts),
                answer_message_id=_text(metadata, "answer_message_id"),
                limit=_optional(metadata, "limit"),
                budget_warning=_optional(metadata, "budget_warning"),
            )
        case _:
            return None


def decode_message(artifact: Artifact) -> list[Event]:
    """The events of a message whose updates the task has merged into one artifact."""
    ended = kind_of(artifact.metadata) == "message_ended"
    events: list[Event] = []
    if text_of(artifact.parts) or not ended:
        events.append(_text_delta(artifact))
    if ended:
        events.append(_message_ended(artifact.metadata))
    return events


def decode_form(artifact: Artifact) -> Form:
    return read_form(data_of(artifact.parts), form_id=artifact.artifact_id)


def decode_ending(status: TaskStatus, metadata: Struct, forms: Mapping[str, Form], partial: str | None) -> Event | None:
    """The event of a status that ends the stream. `completed` has none: the final result came before it."""
    match status.state:
        case TaskState.TASK_STATE_INPUT_REQUIRED:
            return InputRequired(tuple(forms.values()))
        case TaskState.TASK_STATE_FAILED:
            return Failed(_text(metadata, "error_code"), text_of(status.message.parts), partial)
        case TaskState.TASK_STATE_CANCELED:
            return Canceled(_optional(metadata, "by") or "user", text_of(status.message.parts))
        case _:
            return None


def _text_delta(artifact: Artifact) -> TextDelta:
    metadata = artifact.metadata
    return TextDelta(
        agent=_text(metadata, "source_agent"),
        message_id=_text(metadata, "message_id"),
        text=text_of(artifact.parts),
        parent_call_id=_optional(metadata, "parent_call_id"),
        supersedes=_optional(metadata, "supersedes"),
    )


def _message_ended(metadata: Struct) -> MessageEnded:
    return MessageEnded(
        agent=_text(metadata, "source_agent"),
        message_id=_text(metadata, "message_id"),
        parent_call_id=_optional(metadata, "parent_call_id"),
    )


def _call(kind: str, agent: str, metadata: Struct) -> Event:
    call_id = _text(metadata, "call_id")
    parent, step = _optional(metadata, "parent_call_id"), _optional(metadata, "plan_step_id")
    if kind == "agent_started":
        return AgentStarted(agent, call_id, parent, step)
    tool, skill = _text(metadata, "tool_name"), _optional(metadata, "skill_name")
    if kind == "tool_started":
        return ToolStarted(agent, tool, call_id, parent, step, skill)
    ok, reason = _flag(metadata, "ok"), _optional(metadata, "reason")
    if kind == "agent_finished":
        return AgentFinished(agent, call_id, ok, reason, parent, step)
    return ToolFinished(agent, tool, call_id, ok, reason, parent, step, skill)


def _plan(data: Mapping[str, Any]) -> PlanUpdated:
    steps = data.get("steps")
    rows = [row for row in steps if isinstance(row, Mapping)] if isinstance(steps, list) else []
    return PlanUpdated(
        steps=tuple(_step(place, row) for place, row in enumerate(rows)),
        title=str(data.get("title", "")),
    )


def _step(place: int, row: Mapping[str, Any]) -> PlanStep:
    order, agent = row.get("order"), row.get("agent")
    return PlanStep(
        id=str(row.get("id", "")),
        title=str(row.get("title", "")),
        status=_STEP_STATUSES.get(str(row.get("status")), "pending"),
        order=order if isinstance(order, int) else place,
        agent=agent if isinstance(agent, str) else None,
    )


def _text(metadata: Struct, key: str) -> str:
    value = metadata.fields.get(key)
    return "" if value is None else value.string_value


def _optional(metadata: Struct, key: str) -> str | None:
    value = metadata.fields.get(key)
    return None if value is None else value.string_value


def _flag(metadata: Struct, key: str) -> bool:
    value = metadata.fields.get(key)
    return value is not None and value.bool_value
