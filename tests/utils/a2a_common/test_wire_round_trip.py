"""Decoding what was encoded gives the same events, whatever the protocol version between the two."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as types_v03
from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types.a2a_pb2 import StreamResponse, Task, TaskArtifactUpdateEvent
from google.protobuf.json_format import MessageToJson, Parse
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import (
    SUPERVISOR,
    Event,
    Form,
    InputRequired,
    MessageEnded,
    PlanUpdated,
    TextDelta,
)
from ai_platform_engineering.storage.event_log.task_fold import TaskFold
from ai_platform_engineering.utils.a2a_common.wire import (
    Decoder,
    StreamState,
    WireEvent,
    begin,
    decode_task,
    encode,
    restore,
    seq_of,
    stamp,
)
from tests.strategies import runs

agents = st.sampled_from([SUPERVISOR, "argocd"])


def stream_state(agent: str = SUPERVISOR) -> StreamState:
    return StreamState("task-1", "context-1", "trace-1", agent, clock=lambda: 1_700_000_000.25)


def encoded(state: StreamState, events: list[Event]) -> list[WireEvent]:
    updates = begin(state) + [update for event in events for update in encode(state, event)]
    for seq, update in enumerate(updates, start=1):
        stamp(update, seq)
    return updates


def decoded(agent: str, updates: list[WireEvent]) -> list[Event]:
    decoder = Decoder(agent)
    return [event for update in updates for event in decoder.feed(update)] + decoder.finish()


def response(update: WireEvent) -> StreamResponse:
    if isinstance(update, TaskArtifactUpdateEvent):
        return StreamResponse(artifact_update=update)
    return StreamResponse(status_update=update)


def through_core(update: WireEvent) -> WireEvent:
    copy = type(update)()
    copy.ParseFromString(update.SerializeToString())
    return copy


def through_json_1_0(update: WireEvent) -> WireEvent:
    parsed = Parse(MessageToJson(response(update)), StreamResponse())
    return parsed.artifact_update if isinstance(update, TaskArtifactUpdateEvent) else parsed.status_update


def through_json_0_3(update: WireEvent) -> WireEvent:
    if isinstance(update, TaskArtifactUpdateEvent):
        artifact_json = conversions.to_compat_task_artifact_update_event(update).model_dump_json(by_alias=True)
        return conversions.to_core_task_artifact_update_event(
            types_v03.TaskArtifactUpdateEvent.model_validate_json(artifact_json)
        )
    status_json = conversions.to_compat_task_status_update_event(update).model_dump_json(by_alias=True)
    return conversions.to_core_task_status_update_event(
        types_v03.TaskStatusUpdateEvent.model_validate_json(status_json)
    )


@pytest.mark.parametrize("journey", [through_core, through_json_1_0, through_json_0_3])
@given(data=st.data(), agent=agents)
@settings(max_examples=60, deadline=None)
def test_decoding_is_the_inverse_of_encoding(
    journey: Callable[[WireEvent], WireEvent], data: st.DataObject, agent: str
) -> None:
    run = data.draw(runs(agent))
    updates = [journey(update) for update in encoded(stream_state(agent), run)]
    assert decoded(agent, updates) == run


@given(run=runs())
@settings(max_examples=30, deadline=None)
def test_whole_numbers_come_back_as_integers(run: list[Event]) -> None:
    updates = encoded(stream_state(), run)
    assert [seq_of(update) for update in updates] == list(range(1, len(updates) + 1))
    assert all(isinstance(seq_of(through_json_0_3(update)), int) for update in updates)
    for event in decoded(SUPERVISOR, updates):
        if isinstance(event, PlanUpdated):
            assert all(type(step.order) is int for step in event.steps)


@given(run=runs())
@settings(max_examples=30, deadline=None)
def test_encoding_again_gives_the_same_updates(run: list[Event]) -> None:
    assert encoded(stream_state(), run) == encoded(stream_state(), run)


@given(run=runs(), data=st.data())
@settings(max_examples=30, deadline=None)
def test_repeated_updates_are_dropped(run: list[Event], data: st.DataObject) -> None:
    updates = encoded(stream_state(), run)
    cut = data.draw(st.integers(0, len(updates)))
    again = data.draw(st.integers(0, cut))
    assert decoded(SUPERVISOR, updates[:cut] + updates[again:]) == run


@given(run=runs(), data=st.data())
@settings(max_examples=30, deadline=None)
def test_encoding_goes_on_where_another_process_stopped(run: list[Event], data: st.DataObject) -> None:
    whole = stream_state()
    cut = data.draw(st.integers(0, len(run)))
    before = [update for event in run[:cut] for update in encode(whole, event)]
    resumed = stream_state()
    restore(resumed, before)
    for event in run[cut:]:
        assert encode(resumed, event) == encode(whole, event)


@given(run=runs(), data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_whole_task_gives_the_same_events_with_deltas_merged(run: list[Event], data: st.DataObject) -> None:
    fold = data.draw(st.sampled_from([folded_by_sdk, folded_by_log]))
    task = fold(encoded(stream_state(), run))
    if data.draw(st.booleans()):
        compat = conversions.to_compat_task(task).model_dump_json(by_alias=True)
        task = conversions.to_core_task(types_v03.Task.model_validate_json(compat))
    expected = settled(run)
    assert decode_task(task) == expected
    decoder = Decoder(SUPERVISOR)
    assert decoder.feed(task) + decoder.finish() == expected


def folded_by_log(updates: list[WireEvent]) -> Task:
    fold = TaskFold(Task(id="task-1", context_id="context-1"))
    for update in updates:
        fold.apply(update)
    return fold.task()


def folded_by_sdk(updates: list[WireEvent]) -> Task:
    task = Task(id="task-1", context_id="context-1")
    for update in updates:
        if isinstance(update, TaskArtifactUpdateEvent):
            append_artifact_to_task(task, update)
        else:
            task.status.CopyFrom(update.status)
            task.metadata.update(dict(update.metadata.items()))
    return task


def settled(run: list[Event]) -> list[Event]:
    """What a task remembers of a run: each message whole where it began, the last plan where the first was."""
    texts: dict[str, str] = {}
    ended = {event.message_id: event for event in run if isinstance(event, MessageEnded)}
    for event in run:
        if isinstance(event, TextDelta):
            texts[event.message_id] = texts.get(event.message_id, "") + event.text
    plans = [event for event in run if isinstance(event, PlanUpdated)]
    remembered: list[Event] = []
    shown: set[str] = set()
    for event in run:
        match event:
            case PlanUpdated():
                if plans:
                    remembered.append(plans[-1])
                    plans = []
            case TextDelta():
                if event.message_id in shown:
                    continue
                shown.add(event.message_id)
                if texts[event.message_id] or event.message_id not in ended:
                    remembered.append(
                        TextDelta(
                            event.agent,
                            event.message_id,
                            texts[event.message_id],
                            event.parent_call_id,
                            event.supersedes,
                        )
                    )
                if event.message_id in ended:
                    remembered.append(ended[event.message_id])
            case MessageEnded():
                if event.message_id not in shown:
                    remembered.append(event)
            case _:
                remembered.append(event)
    return remembered


def test_a_second_question_of_a_task_asks_only_what_is_still_open() -> None:
    state = stream_state()
    first = InputRequired((Form("a", "A"), Form("b", "B")))
    second = InputRequired((Form("b", "B"),))
    updates = encoded(state, [first, second])
    assert decoded(SUPERVISOR, updates) == [first, second]
    assert decode_task(folded_by_sdk(updates)) == [second]
