"""A2A updates back into events.

Updates of our own agents are read by their metadata alone. Whatever carries none comes from an agent that is not
ours, or from the protocol library underneath one that is, and goes to `foreign`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
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
    StepStatus,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.utils.a2a_common import labels
from ai_platform_engineering.utils.a2a_common.forms import read_form
from ai_platform_engineering.utils.a2a_common.open_calls import OpenCalls
from ai_platform_engineering.utils.a2a_common.values import get_value

_STEP_STATUSES: dict[str, StepStatus] = {name: name for name in get_args(StepStatus)}
_TERMINAL = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)


class Decoder:
    """Reads one stream of the agent called `agent`.

    A connection that broke and was taken up again is the same stream: updates already seen are dropped by their
    number. The task that opens a stream repeats what the updates say, so it only counts where nothing follows it.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._seen: set[int] = set()
        self._snapshot: Task | None = None
        self._started = False
        self._completed = False
        self._ended = False
        self._forms: dict[str, Form] = {}
        self._partial: str | None = None
        self._open = OpenCalls()

    def feed(
        self, item: StreamResponse | Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
    ) -> list[Event]:
        match item:
            case StreamResponse():
                payload = item.WhichOneof("payload")
                return self.feed(getattr(item, payload)) if payload else []
            case TaskArtifactUpdateEvent():
                return self._note(self._artifact_update(item))
            case TaskStatusUpdateEvent():
                return self._note(self._status_update(item))
            case Task():
                return self._note(self._task(item))
            case Message():
                return []

    def finish(self) -> list[Event]:
        """The stream ended: what is still needed to make it a whole one."""
        if self._ended:
            return []
        if not self._started and self._snapshot is not None and _parked(self._snapshot):
            return self._note(decode_task(self._snapshot, self._agent))
        name = labels.display(self._agent)
        if self._completed:
            failed = Failed("no_answer", f"{name} finished without an answer.", self._partial)
        else:
            failed = Failed(
                "stream_ended", f"The connection to {name} ended before its answer. Try again.", self._partial
            )
        return self._note([*self._open.close(ok=False, reason="the connection ended"), failed])

    def _note(self, events: list[Event]) -> list[Event]:
        for event in events:
            self._open.note(event)
            self._ended = isinstance(event, InputRequired | FinalResult | Failed | Canceled)
        return events

    def _is_repeated(self, metadata: Struct) -> bool:
        value = metadata.fields.get("seq")
        if value is None:
            return False
        seq = int(value.number_value)
        if seq in self._seen:
            return True
        self._seen.add(seq)
        return False

    def _artifact_update(self, update: TaskArtifactUpdateEvent) -> list[Event]:
        artifact = update.artifact
        if not is_ours(artifact.metadata) or self._is_repeated(artifact.metadata):
            return []
        self._started = True
        match _text(artifact.metadata, "event"):
            case "input_required":
                form = _form(artifact)
                self._forms[form.form_id] = form
                return []
            case "partial_result":
                self._partial = text_of(artifact.parts)
                return []
            case kind:
                event = _decode(kind, artifact)
                return [] if event is None else [event]

    def _status_update(self, update: TaskStatusUpdateEvent) -> list[Event]:
        if not is_ours(update.metadata) or self._is_repeated(update.metadata):
            return []
        self._started = True
        if update.status.state == TaskState.TASK_STATE_COMPLETED:
            self._completed = True
        ending = _ending(update.status, update.metadata, self._forms, self._partial)
        self._forms = {}
        return [] if ending is None else [ending]

    def _task(self, task: Task) -> list[Event]:
        self._snapshot = task
        if self._started or task.status.state not in _TERMINAL:
            return []
        self._started = True
        return decode_task(task, self._agent)


def decode_task(task: Task, agent: str = SUPERVISOR) -> list[Event]:
    """The events a whole task stands for, each message as one delta and the plan as it last was."""
    events: list[Event] = []
    forms: dict[str, Form] = {}
    partial: str | None = None
    for artifact in task.artifacts:
        match _text(artifact.metadata, "event"):
            case "input_required":
                form = _form(artifact)
                forms[form.form_id] = form
            case "partial_result":
                partial = text_of(artifact.parts)
            case "text_delta" | "message_ended" as kind:
                events += _whole_message(kind, artifact)
            case kind:
                event = _decode(kind, artifact)
                events += [] if event is None else [event]
    message = task.status.message
    if "form_ids" in message.metadata.fields:
        open_forms = get_value(message.metadata.fields["form_ids"])
        forms = {form_id: forms[form_id] for form_id in open_forms if form_id in forms}
    ending = _ending(task.status, message.metadata if is_ours(message.metadata) else task.metadata, forms, partial)
    return events if ending is None else [*events, ending]


def is_ours(metadata: Struct) -> bool:
    return "event" in metadata.fields and "source_agent" in metadata.fields


def text_of(parts: Iterable[Part]) -> str:
    return "".join(part.text for part in parts)


def data_of(parts: Iterable[Part]) -> dict[str, Any]:
    for part in parts:
        if part.HasField("data") and isinstance(data := get_value(part.data), dict):
            return data
    return {}


def _decode(kind: str, artifact: Artifact) -> Event | None:
    metadata = artifact.metadata
    agent = _text(metadata, "source_agent")
    match kind:
        case "text_delta":
            return TextDelta(
                agent=agent,
                message_id=_text(metadata, "message_id"),
                text=text_of(artifact.parts),
                parent_call_id=_optional(metadata, "parent_call_id"),
                supersedes=_optional(metadata, "supersedes"),
            )
        case "message_ended":
            return MessageEnded(agent, _text(metadata, "message_id"), _optional(metadata, "parent_call_id"))
        case "tool_started" | "tool_finished" | "agent_started" | "agent_finished":
            return _call(kind, agent, metadata)
        case "plan_updated":
            return _plan(data_of(artifact.parts))
        case "final_result":
            return FinalResult(
                text=text_of(artifact.parts),
                answer_message_id=_text(metadata, "answer_message_id"),
                limit=_optional(metadata, "limit"),
            )
        case _:
            return None


def _call(kind: str, agent: str, metadata: Struct) -> Event:
    call_id = _text(metadata, "call_id")
    parent, step = _optional(metadata, "parent_call_id"), _optional(metadata, "plan_step_id")
    if kind == "agent_started":
        return AgentStarted(agent, call_id, parent, step)
    tool = _text(metadata, "tool_name")
    if kind == "tool_started":
        return ToolStarted(agent, tool, call_id, parent, step)
    ok, reason = _flag(metadata, "ok"), _optional(metadata, "reason")
    if kind == "agent_finished":
        return AgentFinished(agent, call_id, ok, reason, parent, step)
    return ToolFinished(agent, tool, call_id, ok, reason, parent, step)


def _plan(data: Mapping[str, Any]) -> PlanUpdated:
    steps = data.get("steps")
    return PlanUpdated(
        steps=tuple(
            PlanStep(
                id=str(step.get("id", "")),
                title=str(step.get("title", "")),
                status=_STEP_STATUSES.get(str(step.get("status")), "pending"),
                order=step["order"] if isinstance(step.get("order"), int) else index,
                agent=step["agent"] if isinstance(step.get("agent"), str) else None,
            )
            for index, step in enumerate(steps)
            if isinstance(step, Mapping)
        )
        if isinstance(steps, list)
        else (),
        title=str(data.get("title", "")),
    )


def _form(artifact: Artifact) -> Form:
    return read_form(data_of(artifact.parts), form_id=artifact.artifact_id)


def _whole_message(kind: str, artifact: Artifact) -> list[Event]:
    events: list[Event] = []
    delta = _decode("text_delta", artifact)
    if kind == "text_delta" or text_of(artifact.parts):
        events += [] if delta is None else [delta]
    if kind == "message_ended":
        ended = _decode("message_ended", artifact)
        events += [] if ended is None else [ended]
    return events


def _ending(status: TaskStatus, metadata: Struct, forms: Mapping[str, Form], partial: str | None) -> Event | None:
    """The event that a status of our own agents ends the stream with; an answer has ended it before its status."""
    match status.state:
        case TaskState.TASK_STATE_INPUT_REQUIRED:
            return InputRequired(tuple(forms.values()))
        case TaskState.TASK_STATE_FAILED:
            return Failed(_text(metadata, "error_code"), text_of(status.message.parts), partial)
        case TaskState.TASK_STATE_CANCELED:
            return Canceled(_optional(metadata, "by") or "user")
        case _:
            return None


def _parked(task: Task) -> bool:
    return task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED


def _text(metadata: Struct, key: str) -> str:
    value = metadata.fields.get(key)
    return "" if value is None else value.string_value


def _optional(metadata: Struct, key: str) -> str | None:
    value = metadata.fields.get(key)
    return None if value is None else value.string_value


def _flag(metadata: Struct, key: str) -> bool:
    value = metadata.fields.get(key)
    return value is not None and value.bool_value
