"""Encodes the events of a run as A2A updates.

`encode` turns one event into artifact and status updates, each with a text for plain clients and metadata for ours. It
depends on earlier events (`StreamState`), so encoding and decoding are inverse on sequences, not on single events.
Decoding is in `codec/decoder`; the event log numbers the updates.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from a2a.types.a2a_pb2 import Message, Role, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from google.protobuf.struct_pb2 import Struct

from ai_platform_engineering.budgets.usage import Usage, read_report
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
from ai_platform_engineering.utils.a2a_common.codec.values import get_value, scrub, set_value

__all__ = [
    "FORM_ARTIFACT",
    "Decoder",
    "StreamState",
    "WireEvent",
    "begin",
    "decode_task",
    "encode",
    "is_handed_over",
    "metadata_of",
    "restore",
    "seq_of",
    "stamp",
    "usage_in",
]

WireEvent = TaskStatusUpdateEvent | TaskArtifactUpdateEvent

FORM_ARTIFACT = "UserInputMetaData"

USAGE = "usage"
"""Metadata key of the status with which a delegated run ends."""

_HANDED_OVER = "handed_over"

_Fields = Mapping[str, str | bool | None]


@dataclass(slots=True)
class StreamState:
    """The encoder's state for one task. `agent` is the agent that this server serves."""

    task_id: str
    context_id: str
    trace_id: str
    agent: str = SUPERVISOR
    clock: Callable[[], float] = time.time
    has_plan: bool = False
    opened: set[str] = field(default_factory=set)
    """The ids of the artifacts to which text is appended."""
    questions: int = 0
    """How often the task has asked for input."""
    usage: Callable[[], Mapping[str, Any]] | None = None
    """What the run has used, by model, for the supervisor that delegates it. It is sent with the end of the run."""


def restore(state: StreamState, updates: Iterable[WireEvent]) -> None:
    """Set `state` to its value after `updates`, the stored updates of the task."""
    for update in updates:
        match kind_of(metadata_of(update)):
            case "plan_updated":
                state.has_plan = True
            case "text_delta" if isinstance(update, TaskArtifactUpdateEvent):
                state.opened.add(update.artifact.artifact_id)
            case "input_required" if isinstance(update, TaskStatusUpdateEvent):
                state.questions += 1
            case _:
                pass


def begin(state: StreamState) -> list[WireEvent]:
    return [_status(state, TaskState.TASK_STATE_WORKING, "working")]


def hand_over(state: StreamState, task_state: TaskState, text: str) -> list[WireEvent]:
    """A status that tells subscribers that the task goes on although this stream ends."""
    return [_status(state, task_state, "working", message=_message(state, _HANDED_OVER, text))]


def is_handed_over(event: WireEvent) -> bool:
    """Whether the event is the one of `hand_over`."""
    return isinstance(event, TaskStatusUpdateEvent) and event.status.message.message_id.endswith(f":{_HANDED_OVER}")


def encode(state: StreamState, event: Event) -> list[WireEvent]:
    try:
        return _encode(state, event)
    except UnicodeEncodeError:
        return _encode(state, scrub(event))


def metadata_of(event: WireEvent) -> Struct:
    """The metadata of an update: those of the artifact, or those of the status update itself."""
    return event.artifact.metadata if isinstance(event, TaskArtifactUpdateEvent) else event.metadata


def seq_of(event: WireEvent) -> int | None:
    value = metadata_of(event).fields.get("seq")
    return None if value is None else int(value.number_value)


def usage_in(event: TaskStatusUpdateEvent, otherwise: Mapping[str, Usage] | None) -> Mapping[str, Usage] | None:
    """What an agent's run has used, by model; `otherwise` if the status does not say it."""
    value = event.metadata.fields.get(USAGE)
    return otherwise if value is None else read_report(get_value(value))


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
    fields: dict[str, str | bool | None] = {
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
    fields["tool_name"] = name
    if isinstance(event, ToolStarted | ToolFinished):
        fields["skill_name"] = event.skill
    edge = "start"
    if isinstance(event, AgentFinished | ToolFinished):
        edge = "end"
        fields["ok"] = event.ok
        fields["reason"] = event.reason
    update = _artifact(
        state, f"call:{event.call_id}:{edge}", f"tool_notification_{edge}", text, event.agent, kind, fields
    )
    update.artifact.description = description
    return update


def _plan(state: StreamState, event: PlanUpdated) -> WireEvent:
    name = "execution_plan_status_update" if state.has_plan else "execution_plan_update"
    update = _artifact(state, "plan", name, labels.plan(event.title, event.steps), state.agent, "plan_updated")
    data = {"title": event.title, "steps": [_step_data(step) for step in event.steps]}
    set_value(update.artifact.parts.add().data, data)
    state.has_plan = True
    return update


def _step_data(step: PlanStep) -> dict[str, Any]:
    return {"id": step.id, "title": step.title, "agent": step.agent, "status": step.status, "order": step.order}


def _input_required(state: StreamState, event: InputRequired) -> list[WireEvent]:
    updates: list[WireEvent] = [_form(state, form) for form in event.forms]
    text = labels.questions(event.forms)
    message = _message(state, f"question:{state.questions + 1}", text)
    # A stored task has the message of its status, but not the update's metadata: the open forms are read from here.
    set_value(message.metadata.fields["form_ids"], [form.form_id for form in event.forms])
    updates.append(_status(state, TaskState.TASK_STATE_INPUT_REQUIRED, "input_required", message=message))
    state.questions += 1
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
    warning = {"budget_warning": event.budget_warning}
    fields = {"answer_message_id": event.answer_message_id, "limit": event.limit, **warning}
    update = _artifact(state, "final_result", "final_result", event.text, state.agent, "final_result", fields)
    update.last_chunk = True
    return [update, _status(state, TaskState.TASK_STATE_COMPLETED, "completed", warning)]


def _failed(state: StreamState, event: Failed) -> list[WireEvent]:
    updates: list[WireEvent] = []
    if event.partial is not None:
        partial = _artifact(state, "partial_result", "partial_result", event.partial, state.agent, "partial_result")
        partial.last_chunk = True
        updates.append(partial)
    fields = {"error_code": event.code}
    message = _message(state, "failure", event.message)
    _set_metadata(message.metadata, state, state.agent, "failed", fields)
    updates.append(_status(state, TaskState.TASK_STATE_FAILED, "failed", fields, message))
    return updates


def _canceled(state: StreamState, event: Canceled) -> WireEvent:
    message = _message(state, "canceled", event.message) if event.message else None
    return _status(state, TaskState.TASK_STATE_CANCELED, "canceled", {"by": event.by}, message)


def _artifact(
    state: StreamState, purpose: str, name: str, text: str, source_agent: str, kind: str, fields: _Fields | None = None
) -> TaskArtifactUpdateEvent:
    update = TaskArtifactUpdateEvent(task_id=state.task_id, context_id=state.context_id)
    artifact = update.artifact
    artifact.artifact_id = f"{state.task_id}:{purpose}"
    artifact.name = name
    artifact.parts.add().text = text
    _set_metadata(artifact.metadata, state, source_agent, kind, fields)
    return update


def _status(
    state: StreamState,
    task_state: TaskState,
    kind: str,
    fields: _Fields | None = None,
    message: Message | None = None,
) -> TaskStatusUpdateEvent:
    update = TaskStatusUpdateEvent(task_id=state.task_id, context_id=state.context_id)
    update.status.state = task_state
    seconds, milliseconds = divmod(int(state.clock() * 1000), 1000)
    update.status.timestamp.seconds = seconds
    update.status.timestamp.nanos = milliseconds * 1_000_000
    if message is not None:
        update.status.message.CopyFrom(message)
    _set_metadata(update.metadata, state, state.agent, kind, fields)
    if state.usage is not None and kind != "working":
        set_value(update.metadata.fields[USAGE], state.usage())
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


def _set_metadata(metadata: Struct, state: StreamState, source_agent: str, kind: str, fields: _Fields | None) -> None:
    # Field by field: a third faster than Struct.update, and this runs for every token.
    target = metadata.fields
    target["source_agent"].string_value = source_agent
    target["event"].string_value = kind
    target["trace_id"].string_value = state.trace_id
    if fields:
        for key, value in fields.items():
            if isinstance(value, str):
                target[key].string_value = value
            elif value is not None:
                target[key].bool_value = value
