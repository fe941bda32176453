"""Decodes a stream into events: dispatches updates of our agents and of foreign ones, and guarantees an end."""

from __future__ import annotations

from collections.abc import Iterable

from a2a.types.a2a_pb2 import (
    Message,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatusUpdateEvent,
)
from google.protobuf.struct_pb2 import Struct

from ai_platform_engineering.call_ledger import CallLedger
from ai_platform_engineering.events import SUPERVISOR, Ending, Event, Failed, Form
from ai_platform_engineering.utils.a2a_common.codec import labels
from ai_platform_engineering.utils.a2a_common.codec.decoding import (
    decode_artifact,
    decode_ending,
    decode_form,
    decode_message,
    is_ours,
    kind_of,
)
from ai_platform_engineering.utils.a2a_common.codec.foreign import ForeignStream
from ai_platform_engineering.utils.a2a_common.codec.parts import text_of
from ai_platform_engineering.utils.a2a_common.codec.values import get_value

_WAITING = frozenset({TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED})
_BROKEN = frozenset({TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED, TaskState.TASK_STATE_REJECTED})
_TERMINAL = _BROKEN | {TaskState.TASK_STATE_COMPLETED}


class Decoder:
    """Decodes one stream of the agent called `agent`.

    The same decoder continues after a reconnect: updates with a number it has seen are dropped. The task at the start
    of a stream repeats the updates, so it is decoded only if none follow. `turn` counts the messages sent to the task:
    the calls of foreign agents have no ids, and generated ones contain it.
    """

    def __init__(self, agent: str, turn: int = 1) -> None:
        self._agent = agent
        self._open = CallLedger()
        self._foreign = ForeignStream(agent, turn, self._open)
        self._seen: set[int] = set()
        self._snapshot: Task | None = None
        self._ours = False
        self._has_updates = False
        self._completed = False
        self._ended = False
        self._forms: dict[str, Form] = {}
        self._partial: str | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the run has ended, so that no more updates come."""
        return self._ended or self._completed

    def feed(
        self, item: StreamResponse | Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
    ) -> list[Event]:
        match item:
            case StreamResponse():
                payload = item.WhichOneof("payload")
                return self.feed(getattr(item, payload)) if payload else []
            case TaskArtifactUpdateEvent():
                events = self._artifact_update(item)
            case TaskStatusUpdateEvent():
                events = self._status_update(item)
            case Task():
                events = self._task(item)
            case Message():
                events = [] if self._ended else self._foreign.message(item)
        return self._record(events)

    def finish(self) -> list[Event]:
        """The stream has ended: the events that are missing to end the run, if any."""
        if self._ended:
            return []
        if not self._has_updates and self._snapshot is not None and self._snapshot.status.state in _WAITING:
            return self._record(self._whole_task(self._snapshot))
        name = labels.display(self._agent)
        if self._completed:
            code, sentence = "empty_answer", f"{name} finished without an answer."
        else:
            sentence = f"The connection to {name} ended before its answer did. It may still be at work."
            code = "stream_ended"
        if self._ours:
            ends = self._open.close("the connection ended")
            return self._record([*ends, Failed(code, sentence, self._partial)])
        return self._record(self._foreign.fail(code, sentence, "the connection ended"))

    def _record(self, events: list[Event]) -> list[Event]:
        for event in events:
            self._open.record(event)
            self._ended = isinstance(event, Ending)
        return events

    def _artifact_update(self, update: TaskArtifactUpdateEvent) -> list[Event]:
        self._has_updates = True
        artifact = update.artifact
        if not is_ours(artifact.metadata):
            return [] if self._ours or self._ended else self._foreign.artifact_update(update)
        if self._is_repeated(artifact.metadata):
            return []
        match kind_of(artifact.metadata):
            case "input_required":
                form = decode_form(artifact)
                self._forms[form.form_id] = form
            case "partial_result":
                self._partial = text_of(artifact.parts)
            case _:
                event = decode_artifact(artifact)
                return [] if event is None else [event]
        return []

    def _status_update(self, update: TaskStatusUpdateEvent) -> list[Event]:
        self._has_updates = True
        state = update.status.state
        if not is_ours(update.metadata):
            # When one of our servers fails, the A2A SDK there ends the task with a status without our metadata.
            ignored = self._ended or (self._ours and state not in _BROKEN)
            return [] if ignored else self._foreign.status_update(update)
        if self._is_repeated(update.metadata):
            return []
        self._completed = state == TaskState.TASK_STATE_COMPLETED
        if state not in _TERMINAL:
            self._ended = False
        ending = decode_ending(update.status, update.metadata, self._forms, self._partial)
        self._forms = {}
        return [] if ending is None else [ending]

    def _task(self, task: Task) -> list[Event]:
        self._snapshot = task
        if self._ended or task.status.state not in _TERMINAL or (self._has_updates and self._ours):
            return []
        self._has_updates = True
        return self._whole_task(task)

    def _whole_task(self, task: Task) -> list[Event]:
        return _own_task(task) if _is_own_task(task) else self._foreign.task(task)

    def _is_repeated(self, metadata: Struct) -> bool:
        self._ours = True
        value = metadata.fields.get("seq")
        if value is None:
            return False
        seq = int(value.number_value)
        if seq in self._seen:
            return True
        self._seen.add(seq)
        return False


def decode_updates(agent: str, updates: Iterable[TaskStatusUpdateEvent | TaskArtifactUpdateEvent]) -> list[Event]:
    """The events of stored updates of one of our tasks."""
    decoder = Decoder(agent)
    return [event for update in updates for event in decoder.feed(update)]


def decode_task(task: Task, agent: str = SUPERVISOR) -> list[Event]:
    """The events of a task, with each message as one delta and the plan in its last state.

    A running task gives its events so far.
    """
    return _own_task(task) if _is_own_task(task) else ForeignStream(agent, 1, CallLedger()).task(task)


def _is_own_task(task: Task) -> bool:
    carriers = [task.metadata, task.status.message.metadata, *(artifact.metadata for artifact in task.artifacts)]
    return any(map(is_ours, carriers))


def _own_task(task: Task) -> list[Event]:
    events: list[Event] = []
    forms: dict[str, Form] = {}
    partial: str | None = None
    for artifact in task.artifacts:
        match kind_of(artifact.metadata):
            case "input_required":
                form = decode_form(artifact)
                forms[form.form_id] = form
            case "partial_result":
                partial = text_of(artifact.parts)
            case "text_delta" | "message_ended":
                events += decode_message(artifact)
            case _:
                event = decode_artifact(artifact)
                events += [] if event is None else [event]
    # A task has the message of its status, but not every server stores the metadata of status updates.
    metadata = task.status.message.metadata
    if open_forms := metadata.fields.get("form_ids"):
        forms = {form_id: forms[form_id] for form_id in get_value(open_forms) if form_id in forms}
    ending = decode_ending(task.status, metadata if is_ours(metadata) else task.metadata, forms, partial)
    return events if ending is None else [*events, ending]
