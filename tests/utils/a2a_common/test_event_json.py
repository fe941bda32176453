from __future__ import annotations

import json

import pytest
from a2a.compat.v0_3 import conversions
from a2a.types.a2a_pb2 import (
    Artifact,
    Message,
    Part,
    Role,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.proto_utils import parse_lenient, to_stream_response
from google.protobuf.json_format import MessageToDict
from hypothesis import given, settings

from ai_platform_engineering.events import Event
from ai_platform_engineering.storage.event_log.task_fold import TaskFold
from ai_platform_engineering.utils.a2a_common.codec.event_json import dumps, stream_json
from ai_platform_engineering.utils.a2a_common.codec.stream_json import read_item
from ai_platform_engineering.utils.a2a_common.codec.values import set_fields, set_value
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode, stamp
from tests.strategies import runs

Item = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent


def sdk_1_0(item: Item) -> object:
    return MessageToDict(to_stream_response(item))


def sdk_0_3(item: Item) -> object:
    compat = conversions.to_compat_stream_response(to_stream_response(item), "r")
    return json.loads(compat.model_dump_json(by_alias=True, exclude_none=True))["result"]


def without_times(read: StreamResponse) -> StreamResponse:
    """The parser of streams ignores them, because no reader needs them there."""
    if read.HasField("status_update"):
        read.status_update.status.ClearField("timestamp")
    return read


def assert_equal_to_the_sdks(item: Item) -> None:
    written = json.loads(dumps(stream_json(item, "1.0")))
    assert written == sdk_1_0(item)
    assert without_times(read_item(written)) == without_times(parse_lenient(written, StreamResponse()))
    assert json.loads(dumps(stream_json(item, "0.3"))) == sdk_0_3(item)


@given(run=runs())
@settings(max_examples=80, deadline=None)
def test_whole_runs_and_the_tasks_they_make(run: list[Event]) -> None:
    state = StreamState("t", "c", "trace")
    fold = TaskFold(Task(id="t", context_id="c"))
    for seq, update in enumerate([*begin(state), *(update for event in run for update in encode(state, event))]):
        stamp(update, seq)
        fold.apply(update)
        if not (
            isinstance(update, TaskStatusUpdateEvent) and update.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        ):
            assert_equal_to_the_sdks(update)
    assert_equal_to_the_sdks(fold.task())


def parts() -> list[Part]:
    made = [
        Part(text="plain"),
        Part(text=""),
        Part(raw=b"\x00\xff", media_type="image/png", filename="a.png"),
        Part(url="https://example.org/x", media_type="text/html"),
        Part(text="described", media_type="text/markdown", filename="a.md"),
    ]
    for value in ({"a": [1, 2.5, None, {"b": True}]}, {}):
        data = Part()
        set_value(data.data, value)
        made.append(data)
    set_fields(made[0].metadata, {"k": 1})
    made[1].metadata.SetInParent()
    return made


@pytest.mark.parametrize("part", parts(), ids=lambda part: f"{part.WhichOneof('content')}-{part.media_type}")
def test_every_kind_of_part(part: Part) -> None:
    assert_equal_to_the_sdks(Message(message_id="m", role=Role.ROLE_USER, parts=[part]))
    assert_equal_to_the_sdks(
        TaskArtifactUpdateEvent(task_id="t", context_id="c", artifact=Artifact(artifact_id="a", parts=[part]))
    )


@pytest.mark.parametrize("value", [[1, "two"], "text", 3, True])
def test_data_that_is_no_object(value: object) -> None:
    part = Part()
    set_value(part.data, value)
    assert_equal_to_the_sdks(Message(message_id="m", role=Role.ROLE_AGENT, parts=[part]))


@pytest.mark.parametrize("state", [value for value in TaskState.values() if value not in (6, 8)])
def test_every_state(state: TaskState) -> None:
    update = TaskStatusUpdateEvent(task_id="t", context_id="c")
    update.status.state = state
    assert_equal_to_the_sdks(update)


def test_extensions_and_references() -> None:
    message = Message(
        message_id="m",
        role=Role.ROLE_USER,
        context_id="c",
        task_id="t",
        parts=[Part(text="x")],
        extensions=["urn:x"],
        reference_task_ids=["t0"],
    )
    artifact = Artifact(artifact_id="a", description="d", parts=[Part(text="x")], extensions=["urn:x"])
    assert_equal_to_the_sdks(message)
    assert_equal_to_the_sdks(Task(id="t", context_id="c", history=[message], artifacts=[artifact]))


def test_the_task_that_a_stream_begins_with_is_read_without_its_question() -> None:
    question = Message(message_id="m", role=Role.ROLE_USER, context_id="c", task_id="t", parts=[Part(text="x")])
    task = Task(id="t", context_id="c", history=[question])
    task.status.state = TaskState.TASK_STATE_SUBMITTED
    task.status.timestamp.GetCurrentTime()
    read = read_item(json.loads(dumps(stream_json(task, "1.0"))))
    assert read.task == Task(id="t", context_id="c", status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED))


@pytest.mark.parametrize("state", [TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED])
def test_in_0_3_a_pause_is_the_last_event_of_its_stream(state: TaskState) -> None:
    update = TaskStatusUpdateEvent(task_id="t", context_id="c")
    update.status.state = state
    ours = stream_json(update, "0.3")
    assert ours.pop("final") is True
    assert ours == {key: value for key, value in sdk_0_3(update).items() if key != "final"}


def test_whole_numbers_are_integers_on_the_wire() -> None:
    update = TaskArtifactUpdateEvent(artifact=Artifact(artifact_id="a"))
    stamp(update, 7)
    assert b'"seq":7}' in dumps(stream_json(update, "0.3"))


def test_no_character_can_end_the_line() -> None:
    text = "a\nb\rc\u2028d\u2029e\x85f\x0bg\x1ch 🔧"
    encoded = dumps({"text": text}).decode()
    assert json.loads(encoded) == {"text": text}
    assert len(encoded.splitlines()) == 1
    assert "🔧" in encoded
