"""Decodes stream items from the JSON of protocol 1.0 that `event_json.py` writes.

The result is that of the SDK's parser, at a fraction of its cost, without the parts that no reader here needs: the
question of a new task and the timestamps. Items in any other form are passed to the SDK's parser.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from a2a.types.a2a_pb2 import Artifact, Part, StreamResponse, TaskState
from a2a.utils.proto_utils import parse_lenient

from ai_platform_engineering.utils.a2a_common.codec.values import set_fields, set_value

Json = Mapping[str, Any]

_STATES: Final[Mapping[str, Any]] = dict(TaskState.items())
_UPDATE: Final = frozenset({"taskId", "contextId"})
_ARTIFACT_UPDATE: Final = _UPDATE | {"artifact", "append", "lastChunk"}
_ARTIFACT: Final = frozenset({"artifactId", "name", "description", "parts", "metadata"})
_STATUS_UPDATE: Final = _UPDATE | {"status", "metadata"}
_STATUS: Final = frozenset({"state", "timestamp"})
_NEW_TASK: Final = frozenset({"id", "contextId", "status", "history"})


def read_item(item: Json) -> StreamResponse:
    match item:
        case {"artifactUpdate": {"artifact": artifact} as update} if (
            update.keys() <= _ARTIFACT_UPDATE and artifact.keys() <= _ARTIFACT and _is_plain(artifact)
        ):
            return _artifact_update(update, artifact)
        case {"statusUpdate": {"status": status} as update} if update.keys() <= _STATUS_UPDATE and _is_bare(status):
            return _status_update(update, status)
        case {"task": {"status": {"state": "TASK_STATE_SUBMITTED"}} as task} if task.keys() <= _NEW_TASK:
            return _new_task(task)
        case _:
            return parse_lenient(dict(item), StreamResponse())


def _artifact_update(update: Json, artifact: Json) -> StreamResponse:
    response = StreamResponse()
    read = response.artifact_update
    read.task_id, read.context_id = update.get("taskId", ""), update.get("contextId", "")
    read.append, read.last_chunk = update.get("append", False), update.get("lastChunk", False)
    read.artifact.artifact_id = artifact.get("artifactId", "")
    read.artifact.name = artifact.get("name", "")
    read.artifact.description = artifact.get("description", "")
    _read_content(read.artifact, artifact)
    return response


def _status_update(update: Json, status: Json) -> StreamResponse:
    response = StreamResponse()
    read = response.status_update
    read.task_id, read.context_id = update.get("taskId", ""), update.get("contextId", "")
    read.status.state = _STATES[status["state"]]
    if (metadata := update.get("metadata")) is not None:
        read.metadata.SetInParent()
        set_fields(read.metadata, metadata)
    return response


def _new_task(task: Json) -> StreamResponse:
    """The submitted task at the start of a stream. Its history, the question, is left out: the reader sent it."""
    response = StreamResponse()
    read = response.task
    read.id, read.context_id = task.get("id", ""), task.get("contextId", "")
    read.status.state = TaskState.TASK_STATE_SUBMITTED
    return response


def _is_plain(carrier: Json) -> bool:
    return all(part.keys() <= {"text"} or part.keys() <= {"data"} for part in carrier.get("parts", ()))


def _is_bare(status: Json) -> bool:
    return status.keys() <= _STATUS and status.get("state") in _STATES


def _read_content(read: Artifact, carrier: Json) -> None:
    for part in carrier.get("parts", ()):
        _read_part(read.parts.add(), part)
    if (metadata := carrier.get("metadata")) is not None:
        read.metadata.SetInParent()
        set_fields(read.metadata, metadata)


def _read_part(read: Part, part: Json) -> None:
    if "text" in part:
        read.text = part["text"]
    elif "data" in part:
        set_value(read.data, part["data"])
