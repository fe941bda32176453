"""Events of a run as A2A updates.

`encode` turns one event into the updates that carry it: an artifact or status update with a text for plain clients
and metadata for ours. It needs a little history, kept in `StreamState`, so it is the inverse of decoding on
sequences, not on single events. Decoding lives in `decoder`; numbering belongs to the event log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from a2a.types.a2a_pb2 import Message, Role, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from google.protobuf.struct_pb2 import Struct

from ai_platform_engineering.events import (
    SUPERVISOR,
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
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.utils.a2a_common.codec import labels
from ai_platform_engineering.utils.a2a_common.codec.decoder import Decoder, decode_task
from ai_platform_engineering.utils.a2a_common.codec.decoding import kind_of
from ai_platform_engineering.utils.a2a_common.codec.forms import form_data
from ai_platform_engineering.utils.a2a_common.codec.values import scrub, set_value

__all__ = [
    "FORM_ARTIFACT",
    "Decoder",
    "StreamState",
    "WireEvent",
    "begin",
    "decode_task",
    "encode",
    "metadata_of",
    "recall",
    "seq_of",
    "stamp",
]

WireEvent = TaskStatusUpdateEvent | TaskArtifactUpdateEvent

FORM_ARTIFACT = "UserInputMetaData"

_Marks = Mapping[str, str | bool | None]


@dataclass(slots=True)
class StreamState:
    """What encoding has to remember of one task. `agent` is whose server this is."""

    task_id: str
    context_id: str
    trace_id: str
    agent: str = SUPERVISOR
    clock: Callable[[], float] = time.time
    planned: bool = False
    opened: set[str] = field(default_factory=set)
    asked: int = 0


def recall(state: StreamState, sent: Iterable[WireEvent]) -> None:
    """Bring `state` to where `sent`, the updates a task already has, left it."""
    for update in sent:
        match kind_of(metadata_of(update)):
            case "plan_updated":
                state.planned = True
            case "text_delta" if isinstance(update, TaskArtifactUpdateEvent):
                state.opened.add(update.artifact.artifact_id)
            case "input_required" if isinstance(update, TaskStatusUpdateEvent):
                state.asked += 1
            case _:
                pass


def begin(state: StreamState) -> list[WireEvent]:
    return [_status(state, TaskState.TASK_STATE_WORKING, "working")]


def encode(state: StreamState, event: Event) -> list[WireEvent]:
    try:
        return _encode(state, event)
    except UnicodeEncodeError:
        return _encode(state, scrub(event))


def metadata_of(event: WireEvent) -> Struct:
    """Where our metadata sits: on the artifact, or on the event of a status update."""
    return event.artifact.metadata if isinstance(event, TaskArtifactUpdateEvent) else event.metadata


def seq_of(event: WireEvent) -> int | None:
    value = metadata_of(event).fields.get("seq")
    return None if value is None else int(value.number_value)


def stamp(event: WireEvent, seq: int) -> None:
    metadata_of(event).fields["seq"].number_value = seq


def _encode(state: StreamState, event: Event) -> list[WireEvent]:
    updates: list[WireEvent]
    match event:
        case TextDelta():
            updates = [_text_delta(state, event)]
        case MessageEnded():
            updates = [_message_ended(state, event)]
        case ToolStarted() | ToolFinished() | AgentStarted() | AgentFinished():
            updates = [_notification(state, event)]
        case PlanUpdated():
            updates = [_plan(state, event)]
        case InputRequired():
            updates = _input_required(state, event)
        case FinalResult():
            updates = _final_result(state, event)
        case Failed():
            updates = _failed(state, event)
        case Canceled():
            updates = [_canceled(state, event)]
    return updates


def _text_delta(state: StreamState, event: TextDelta) -> WireEvent:
    update = _message_update(state, event, "text_delta", event.text)
    if event.supersedes is not None:
        update.artifact.metadata.fields["supersedes"].string_value = event.supersedes
    state.opened.add(update.artifact.artifact_id)
    return update


def _message_ended(state: StreamState, event: MessageEnded) -> WireEvent:
    update = _message_update(state, event, "message_ended", "")
    update.last_chunk = True
    return update


def _message_update(
    state: StreamState, event: TextDelta | MessageEnded, kind: str, text: str
) -> TaskArtifactUpdateEvent:
    update = _artifact(
        state,
        f"text:{event.agent}:{event.message_id}",
        "streaming_result" if event.agent == state.agent else "sub_agent_result",
        text,
        event.agent,
        kind,
        {"message_id": event.message_id, "parent_call_id": event.parent_call_id},
    )
    update.append = update.artifact.artifact_id in state.opened
    return update


def _notification(
    state: StreamState, event: AgentStarted | AgentFinished | ToolStarted | ToolFinished
) -> TaskArtifactUpdateEvent:
    marks: dict[str, str | bool | None] = {
        "call_id": event.call_id,
        "parent_call_id": event.parent_call_id,
        "plan_step_id": event.plan_step_id,
    }
    match event:
        case AgentStarted():
            kind, name = "agent_started", event.agent
            text, description = labels.agent_started(state.agent, event.agent), labels.call_started(name)
        case ToolStarted():
            kind, name = "tool_started", event.tool
            text, description = labels.tool_started(event.agent, event.tool), labels.call_started(name)
        case AgentFinished():
            kind, name = "agent_finished", event.agent
            text = labels.agent_finished(state.agent, event.agent, event.ok, event.reason)
            description = labels.call_finished(name, event.ok)
        case ToolFinished():
            kind, name = "tool_finished", event.tool
            text = labels.tool_finished(event.agent, event.tool, event.ok, event.reason)
            description = labels.call_finished(name, event.ok)
    marks["tool_name"] = name
    if isinstance(event, ToolStarted | ToolFinished):
        marks["skill_name"] = event.skill
    edge = "start"
    if isinstance(event, AgentFinished | ToolFinished):
        edge = "end"
        marks["ok"] = event.ok
        marks["reason"] = event.reason
    update = _artifact(
        state, f"call:{event.call_id}:{edge}", f"tool_notification_{edge}", text, event.agent, kind, marks
    )
    update.artifact.description = description
    return update


def _plan(state: StreamState, event: PlanUpdated) -> WireEvent:
    name = "execution_plan_status_update" if state.planned else "execution_plan_update"
    update = _artifact(state, "plan", name, labels.plan(event.title, event.steps), state.agent, "plan_updated")
    data = {"title": event.title, "steps": [_step_data(step) for step in event.steps]}
    set_value(update.artifact.parts.add().data, data)
    state.planned = True
    return update


def _step_data(step: PlanStep) -> dict[str, Any]:
    return {"id": step.id, "title": step.title, "agent": step.agent, "status": step.status, "order": step.order}


def _input_required(state: StreamState, event: InputRequired) -> list[WireEvent]:
    updates: list[WireEvent] = [_form(state, form) for form in event.forms]
    text = labels.questions(event.forms)
    message = _message(state, f"question:{state.asked + 1}", text)
    # A task keeps the message of its status but not the update's metadata: this is how it knows which forms are open.
    set_value(message.metadata.fields["form_ids"], [form.form_id for form in event.forms])
    updates.append(_status(state, TaskState.TASK_STATE_INPUT_REQUIRED, "input_required", message=message))
    state.asked += 1
    return updates


def _form(state: StreamState, form: Form) -> WireEvent:
    update = _artifact(
        state,
        f"form:{form.form_id}",
        FORM_ARTIFACT,
        labels.question(form),
        form.agent or state.agent,
        "input_required",
    )
    set_value(update.artifact.parts.add().data, form_data(form))
    update.last_chunk = True
    return update


def _final_result(state: StreamState, event: FinalResult) -> list[WireEvent]:
    marks = {"answer_message_id": event.answer_message_id, "limit": event.limit}
    update = _artifact(state, "final_result", "final_result", event.text, state.agent, "final_result", marks)
    update.last_chunk = True
    return [update, _status(state, TaskState.TASK_STATE_COMPLETED, "completed")]


def _failed(state: StreamState, event: Failed) -> list[WireEvent]:
    updates: list[WireEvent] = []
    if event.partial is not None:
        partial = _artifact(state, "partial_result", "partial_result", event.partial, state.agent, "partial_result")
        partial.last_chunk = True
        updates.append(partial)
    marks = {"error_code": event.code}
    message = _message(state, "failure", event.message)
    _mark(message.metadata, state, state.agent, "failed", marks)
    updates.append(_status(state, TaskState.TASK_STATE_FAILED, "failed", marks, message))
    return updates


def _canceled(state: StreamState, event: Canceled) -> WireEvent:
    message = _message(state, "canceled", event.message) if event.message else None
    return _status(state, TaskState.TASK_STATE_CANCELED, "canceled", {"by": event.by}, message)


def _artifact(
    state: StreamState, purpose: str, name: str, text: str, source_agent: str, kind: str, marks: _Marks | None = None
) -> TaskArtifactUpdateEvent:
    update = TaskArtifactUpdateEvent(task_id=state.task_id, context_id=state.context_id)
    artifact = update.artifact
    artifact.artifact_id = f"{state.task_id}:{purpose}"
    artifact.name = name
    artifact.parts.add().text = text
    _mark(artifact.metadata, state, source_agent, kind, marks)
    return update


def _status(
    state: StreamState,
    task_state: TaskState,
    kind: str,
    marks: _Marks | None = None,
    message: Message | None = None,
) -> TaskStatusUpdateEvent:
    update = TaskStatusUpdateEvent(task_id=state.task_id, context_id=state.context_id)
    update.status.state = task_state
    seconds, milliseconds = divmod(int(state.clock() * 1000), 1000)
    update.status.timestamp.seconds = seconds
    update.status.timestamp.nanos = milliseconds * 1_000_000
    if message is not None:
        update.status.message.CopyFrom(message)
    _mark(update.metadata, state, state.agent, kind, marks)
    return update


def _message(state: StreamState, purpose: str, text: str) -> Message:
    message = Message(
        message_id=f"{state.task_id}:{purpose}",
        task_id=state.task_id,
        context_id=state.context_id,
        role=Role.ROLE_AGENT,
    )
    message.parts.add().text = text
    return message


def _mark(metadata: Struct, state: StreamState, source_agent: str, kind: str, marks: _Marks | None) -> None:
    # Field by field: a third quicker than Struct.update, and this runs for every token.
    fields = metadata.fields
    fields["source_agent"].string_value = source_agent
    fields["event"].string_value = kind
    fields["trace_id"].string_value = state.trace_id
    if marks:
        for key, value in marks.items():
            if isinstance(value, str):
                fields[key].string_value = value
            elif value is not None:
                fields[key].bool_value = value
