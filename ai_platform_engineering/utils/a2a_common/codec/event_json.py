"""Encodes tasks and updates as JSON of both protocol versions.

The result is that of the SDK's converters, with whole numbers as integers, at a fraction of their cost: every event of
every stream is encoded here.
"""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any, Final, Literal

from a2a.types.a2a_pb2 import (
    Artifact,
    ListTasksResponse,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import MessageToDict
from pydantic_core import to_json

from ai_platform_engineering.utils.a2a_common.codec.values import get_fields, get_value
from ai_platform_engineering.utils.a2a_common.protocol import TERMINAL_STATES, WAITING_STATES

ProtocolVersion = Literal["0.3", "1.0"]
Json = dict[str, Any]

_STATES_1_0: Final = {value: name for name, value in TaskState.items()}
_STATES_0_3: Final = {
    value: name.removeprefix("TASK_STATE_").lower().replace("_", "-") for name, value in TaskState.items()
} | {TaskState.TASK_STATE_UNSPECIFIED: "unknown"}
_LAST_STATES: Final = TERMINAL_STATES | WAITING_STATES

# Characters that JSON allows, but that some SSE readers treat as line ends.
_LINE_ENDS: Final = re.compile(rb"\xc2\x85|\xe2\x80[\xa8\xa9]")


def dumps(value: Any) -> bytes:
    """JSON on one line, also for readers that split lines at more characters than SSE defines."""
    text = to_json(value, inf_nan_mode="null")
    return text if text.isascii() else _LINE_ENDS.sub(_escaped, text)


def _escaped(character: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(character[0].decode())


def stream_json(
    item: Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent, version: ProtocolVersion
) -> Json:
    """An item of a stream. Its type is the key in 1.0, and `kind` in 0.3."""
    match item:
        case TaskArtifactUpdateEvent():
            return artifact_update_0_3(item) if version == "0.3" else {"artifactUpdate": artifact_update_1_0(item)}
        case TaskStatusUpdateEvent():
            return status_update_0_3(item) if version == "0.3" else {"statusUpdate": status_update_1_0(item)}
        case Task():
            return task_0_3(item) if version == "0.3" else {"task": task_1_0(item)}
        case Message():
            return message_0_3(item) if version == "0.3" else {"message": message_1_0(item)}


def task_1_0(task: Task) -> Json:
    body = _filled(id=task.id, contextId=task.context_id)
    if task.HasField("status"):
        body["status"] = status_1_0(task.status)
    if task.artifacts:
        body["artifacts"] = [artifact_1_0(artifact) for artifact in task.artifacts]
    if task.history:
        body["history"] = [message_1_0(message) for message in task.history]
    return _with_metadata(body, task)


def task_page_1_0(page: ListTasksResponse, *, with_artifacts: bool) -> Json:
    """A page of tasks, with empty fields: the protocol requires them."""
    body: Json = MessageToDict(page, always_print_fields_with_no_presence=True)
    if not with_artifacts:
        for task in body["tasks"]:
            task.pop("artifacts", None)
    return body


def status_1_0(status: TaskStatus) -> Json:
    body: Json = {}
    if status.state:
        body["state"] = _STATES_1_0.get(status.state, status.state)
    if status.HasField("message"):
        body["message"] = message_1_0(status.message)
    if status.HasField("timestamp"):
        body["timestamp"] = status.timestamp.ToJsonString()
    return body


def message_1_0(message: Message) -> Json:
    body = _filled(messageId=message.message_id, contextId=message.context_id, taskId=message.task_id)
    if message.role:
        body["role"] = Role.Name(message.role)
    if message.parts:
        body["parts"] = [part_1_0(part) for part in message.parts]
    if message.extensions:
        body["extensions"] = list(message.extensions)
    if message.reference_task_ids:
        body["referenceTaskIds"] = list(message.reference_task_ids)
    return _with_metadata(body, message)


def artifact_1_0(artifact: Artifact) -> Json:
    body = _filled(artifactId=artifact.artifact_id, name=artifact.name, description=artifact.description)
    if artifact.parts:
        body["parts"] = [part_1_0(part) for part in artifact.parts]
    if artifact.extensions:
        body["extensions"] = list(artifact.extensions)
    return _with_metadata(body, artifact)


def part_1_0(part: Part) -> Json:
    body: Json = {}
    match part.WhichOneof("content"):
        case "text":
            body["text"] = part.text
        case "data":
            body["data"] = get_value(part.data)
        case "raw":
            body["raw"] = b64encode(part.raw).decode()
        case "url":
            body["url"] = part.url
    if part.filename:
        body["filename"] = part.filename
    if part.media_type:
        body["mediaType"] = part.media_type
    return _with_metadata(body, part)


def status_update_1_0(update: TaskStatusUpdateEvent) -> Json:
    body = _filled(taskId=update.task_id, contextId=update.context_id)
    if update.HasField("status"):
        body["status"] = status_1_0(update.status)
    return _with_metadata(body, update)


def artifact_update_1_0(update: TaskArtifactUpdateEvent) -> Json:
    body = _filled(taskId=update.task_id, contextId=update.context_id)
    if update.HasField("artifact"):
        body["artifact"] = artifact_1_0(update.artifact)
    if update.append:
        body["append"] = True
    if update.last_chunk:
        body["lastChunk"] = True
    return _with_metadata(body, update)


def task_0_3(task: Task) -> Json:
    body: Json = {"kind": "task", "id": task.id, "contextId": task.context_id, "status": status_0_3(task.status)}
    if task.artifacts:
        body["artifacts"] = [artifact_0_3(artifact) for artifact in task.artifacts]
    if task.history:
        body["history"] = [message_0_3(message) for message in task.history]
    return _with_metadata(body, task)


def status_0_3(status: TaskStatus) -> Json:
    body: Json = {"state": _STATES_0_3.get(status.state, "unknown")}
    if status.HasField("message"):
        body["message"] = message_0_3(status.message)
    if status.HasField("timestamp"):
        body["timestamp"] = status.timestamp.ToJsonString()
    return body


def message_0_3(message: Message) -> Json:
    body: Json = {
        "kind": "message",
        "messageId": message.message_id,
        "role": "user" if message.role == Role.ROLE_USER else "agent",
        "parts": [part_0_3(part) for part in message.parts],
        **_filled(contextId=message.context_id, taskId=message.task_id),
    }
    if message.extensions:
        body["extensions"] = list(message.extensions)
    if message.reference_task_ids:
        body["referenceTaskIds"] = list(message.reference_task_ids)
    return _with_metadata(body, message)


def artifact_0_3(artifact: Artifact) -> Json:
    body: Json = {
        "artifactId": artifact.artifact_id,
        **_filled(name=artifact.name, description=artifact.description),
        "parts": [part_0_3(part) for part in artifact.parts],
    }
    if artifact.extensions:
        body["extensions"] = list(artifact.extensions)
    return _with_metadata(body, artifact)


def part_0_3(part: Part) -> Json:
    content = part.WhichOneof("content")
    match content:
        case "data":
            data = get_value(part.data)
            if isinstance(data, dict):
                return _with_metadata({"kind": "data", "data": data}, part)
            # A 0.3 data part must be an object. The SDK's clients unwrap the value if this metadata key is set.
            body = _with_metadata({"kind": "data", "data": {"value": data}}, part)
            body["metadata"] = body.get("metadata", {}) | {"data_part_compat": True}
            return body
        case "raw" | "url":
            place = {"bytes": b64encode(part.raw).decode()} if content == "raw" else {"uri": part.url}
            file = place | _filled(name=part.filename, mimeType=part.media_type)
            return _with_metadata({"kind": "file", "file": file}, part)
        case _:
            return _with_metadata({"kind": "text", "text": part.text}, part)


def status_update_0_3(update: TaskStatusUpdateEvent) -> Json:
    body: Json = {
        "kind": "status-update",
        "taskId": update.task_id,
        "contextId": update.context_id,
        "status": status_0_3(update.status),
        "final": update.status.state in _LAST_STATES,
    }
    return _with_metadata(body, update)


def artifact_update_0_3(update: TaskArtifactUpdateEvent) -> Json:
    body: Json = {
        "kind": "artifact-update",
        "taskId": update.task_id,
        "contextId": update.context_id,
        "artifact": artifact_0_3(update.artifact),
        "append": update.append,
        "lastChunk": update.last_chunk,
    }
    return _with_metadata(body, update)


def _filled(**fields: str) -> Json:
    return {name: text for name, text in fields.items() if text}


def _with_metadata(
    body: Json, carrier: Task | Message | Artifact | Part | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
) -> Json:
    if carrier.HasField("metadata"):
        body["metadata"] = get_fields(carrier.metadata)
    return body
