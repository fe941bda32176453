"""Folding: computes a task from its messages and events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from a2a.types.a2a_pb2 import Artifact, Message, Part, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent

from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES, WAITING_STATES

_BROKEN_OFF: Final = frozenset({TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED})


def ends_task(event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent) -> bool:
    """Whether the event is the last one of its task."""
    return isinstance(event, TaskStatusUpdateEvent) and event.status.state in TERMINAL_STATES


def suspends_task(event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent) -> bool:
    """Whether the task waits for an answer after this event."""
    return isinstance(event, TaskStatusUpdateEvent) and event.status.state in WAITING_STATES


def breaks_off(events: Sequence[TaskStatusUpdateEvent | TaskArtifactUpdateEvent]) -> bool:
    """Whether the task ends with the last of the events, without a result."""
    last = events[-1] if events else None
    return isinstance(last, TaskStatusUpdateEvent) and last.status.state in _BROKEN_OFF


class TaskFold:
    """The task so far. Appended text is joined when the task is read, so a long streamed answer costs linear time."""

    __slots__ = ("_places", "_task", "_unjoined")

    def __init__(self, task: Task) -> None:
        self._task = Task()
        self._task.CopyFrom(task)
        self._places = {artifact.artifact_id: place for place, artifact in enumerate(task.artifacts)}
        self._unjoined: dict[str, list[str]] = {}

    @property
    def state(self) -> TaskState:
        return self._task.status.state

    @property
    def context_id(self) -> str:
        return self._task.context_id

    @property
    def changed_ns(self) -> int:
        """When the status last changed, in nanoseconds since the epoch; 0 if it carries no time."""
        return self._task.status.timestamp.ToNanoseconds()

    def add_message(self, message: Message) -> None:
        self._shelve_status_message()
        self._task.status.ClearField("message")
        self._task.history.append(message)

    def apply(self, event: TaskStatusUpdateEvent | TaskArtifactUpdateEvent) -> None:
        match event:
            case TaskStatusUpdateEvent():
                self._shelve_status_message()
                self._task.metadata.MergeFrom(event.metadata)
                self._task.status.CopyFrom(event.status)
            case TaskArtifactUpdateEvent():
                self._apply_artifact(event.artifact, append=event.append)

    def task(self) -> Task:
        """A copy that the caller may change."""
        for artifact_id in tuple(self._unjoined):
            self._join(artifact_id)
        copy = Task()
        copy.CopyFrom(self._task)
        return copy

    def _shelve_status_message(self) -> None:
        if self._task.status.HasField("message"):
            self._task.history.append(self._task.status.message)

    def _apply_artifact(self, artifact: Artifact, *, append: bool) -> None:
        artifact_id = artifact.artifact_id
        place = self._places.get(artifact_id)
        if place is None:
            self._places[artifact_id] = len(self._task.artifacts)
            self._task.artifacts.append(artifact)
            return
        present = self._task.artifacts[place]
        if not append:
            self._unjoined.pop(artifact_id, None)
            present.CopyFrom(artifact)
            return
        for part in artifact.parts:
            joins = artifact_id in self._unjoined or (len(present.parts) > 0 and _is_plain_text(present.parts[-1]))
            if joins and _is_plain_text(part):
                self._unjoined.setdefault(artifact_id, []).append(part.text)
            else:
                self._join(artifact_id)
                present.parts.append(part)
        present.metadata.MergeFrom(artifact.metadata)

    def _join(self, artifact_id: str) -> None:
        pieces = self._unjoined.pop(artifact_id, None)
        if pieces:
            last = self._task.artifacts[self._places[artifact_id]].parts[-1]
            last.text = last.text + "".join(pieces)


def _is_plain_text(part: Part) -> bool:
    return part.WhichOneof("content") == "text" and not (part.media_type or part.filename or part.HasField("metadata"))
