"""Agents that are not ours, as they speak 0.3 and 1.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from a2a.compat.v0_3 import conversions
from a2a.compat.v0_3 import types as types_v03
from a2a.types.a2a_pb2 import StreamResponse
from google.protobuf.json_format import ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import (
    Canceled,
    Event,
    Failed,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    MessageEnded,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.utils.a2a_common.wire import Decoder, decode_task

TASK = "ca89f822-cc4d-475e-a4ee-18829c696b31"
CONTEXT = "2754658e-fff7-4d47-9951-e1ad0b817a46"

Item = dict[str, Any]
Read = Callable[..., list[Event]]


def task(state: str = "submitted", **more: Any) -> Item:
    return {"kind": "task", "id": TASK, "contextId": CONTEXT, "status": {"state": state}, **more}


def message(*parts: Item, role: str = "agent") -> Item:
    return {
        "kind": "message",
        "messageId": "a47eaa07-0097-4821-9efc-887fcc063238",
        "taskId": TASK,
        "contextId": CONTEXT,
        "role": role,
        "parts": list(parts),
    }


def words(text: str) -> Item:
    return {"kind": "text", "text": text}


def status(state: str, text: str | None = None, *parts: Item) -> Item:
    said = ([words(text)] if text is not None else []) + list(parts)
    body: Item = {"state": state, **({"message": message(*said)} if said else {})}
    final = state in ("completed", "failed", "canceled", "rejected")
    return {"kind": "status-update", "taskId": TASK, "contextId": CONTEXT, "final": final, "status": body}


def artifact(
    name: str | None, text: str, *, append: bool = False, last: bool = True, key: str = "8dee27df", parts: Any = None
) -> Item:
    body = {"artifactId": key, "parts": parts or [words(text)], **({"name": name} if name else {})}
    return {
        "kind": "artifact-update",
        "taskId": TASK,
        "contextId": CONTEXT,
        "artifact": body,
        "append": append,
        "lastChunk": last,
    }


def in_0_3(item: Item) -> StreamResponse:
    """What the SDK's client makes of 0.3 JSON."""
    return conversions.to_core_stream_response(
        types_v03.SendStreamingMessageSuccessResponse.model_validate({"id": "1", "jsonrpc": "2.0", "result": item})
    )


def in_1_0(item: Item) -> StreamResponse:
    """The same as 1.0 JSON would say it."""
    member = {
        "task": "task",
        "message": "message",
        "status-update": "statusUpdate",
        "artifact-update": "artifactUpdate",
    }[item["kind"]]
    return ParseDict({member: _newer(item)}, StreamResponse())


def _newer(value: Any) -> Any:
    if isinstance(value, list):
        return [_newer(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "user_input" in value:
        return value
    converted = {key: _newer(item) for key, item in value.items() if key not in ("kind", "final")}
    if "state" in converted:
        converted["state"] = "TASK_STATE_" + converted["state"].upper().replace("-", "_")
    if "role" in converted:
        converted["role"] = "ROLE_" + converted["role"].upper()
    return converted


@pytest.fixture(params=[in_0_3, in_1_0], ids=["0.3", "1.0"])
def read(request: pytest.FixtureRequest) -> Read:
    def events(*items: Item, ended: bool = True, turn: int = 1) -> list[Event]:
        decoder = Decoder("argocd", turn)
        result = [event for item in items for event in decoder.feed(request.param(item))]
        return result + decoder.finish() if ended else result

    return events


def answer_of(events: list[Event]) -> str:
    """The answer, after checking what must hold of every answer."""
    last = events[-1]
    assert isinstance(last, FinalResult)
    deltas = [
        event.text for event in events if isinstance(event, TextDelta) and event.message_id == last.answer_message_id
    ]
    assert "".join(deltas) == last.text
    assert events[-2] == MessageEnded("argocd", last.answer_message_id)
    return last.text


VERSION = "Argo CD is at **v2.9.3**.\n\n| Component | Version |\n| --- | --- |\n| server | v2.9.3 |"


def test_the_agent_of_the_recorded_stream(read: Read) -> None:
    events = read(
        task(history=[message(words("show version"), role="user")]),
        status("working", "🔧 Calling tool: **version_service__version**\n"),
        status("working", "✅ Tool **version_service__version** completed\n"),
        status("working", VERSION),
        artifact("current_result", ""),
        status("completed"),
    )
    started, finished = events[:2]
    assert isinstance(started, ToolStarted)
    assert (started.agent, started.tool) == ("argocd", "version_service__version")
    assert finished == ToolFinished("argocd", "version_service__version", started.call_id, True)
    assert answer_of(events) == VERSION
    assert [type(event) for event in events[2:]] == [TextDelta, MessageEnded, FinalResult]


def test_the_same_agent_after_its_texts_were_cleaned(read: Read) -> None:
    events = read(
        task(),
        status("working", "🔧 Argocd: Calling tool: Version_Service__Version"),
        status("working", "✅ Argocd: Tool Version_Service__Version completed"),
        status("working", VERSION),
        artifact("current_result", ""),
        status("completed"),
    )
    assert [getattr(event, "tool", None) for event in events[:2]] == ["Version_Service__Version"] * 2
    assert answer_of(events) == VERSION


@pytest.mark.parametrize("name", ["current_result", "complete_result", "final_result"])
def test_an_artifact_meant_as_the_answer_beats_every_other_text(read: Read, name: str) -> None:
    events = read(
        task(),
        artifact("notes", "some notes", key="1"),
        artifact(name, "The answer", key="2"),
        status("working", "Nearly done"),
        status("completed", "The answer"),
    )
    assert answer_of(events) == "The answer"
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["The answer"]


def test_artifacts_of_any_name_beat_status_texts(read: Read) -> None:
    events = read(
        status("working", "Looking up the exchange rates..."),
        artifact("conversion_result", "100 USD is 92 EUR", key="1"),
        artifact(None, "Rates of today", key="2"),
        status("completed"),
    )
    assert answer_of(events) == "100 USD is 92 EUR\n\nRates of today"


def test_the_last_status_text_may_come_with_the_end(read: Read) -> None:
    events = read(status("working", "Thinking"), status("completed", "Forty-two"))
    assert answer_of(events) == "Forty-two"


def test_the_answer_streams_as_it_is_written(read: Read) -> None:
    pieces = (
        artifact("final_result", "Argo ", last=False),
        artifact("final_result", "CD ", append=True, last=False),
        artifact("final_result", "v2", append=True),
    )
    live = read(*pieces, ended=False)
    assert [event.text for event in live if isinstance(event, TextDelta)] == ["Argo ", "CD ", "v2"]
    assert answer_of(read(*pieces, status("completed"))) == "Argo CD v2"


def test_tokens_and_then_the_whole_are_one_answer(read: Read) -> None:
    events = read(
        artifact("streaming_result", "Argo ", last=False, key="1"),
        artifact("streaming_result", "CD", append=True, last=False, key="1"),
        artifact("final_result", "Argo CD", key="2"),
        status("completed"),
    )
    assert answer_of(events) == "Argo CD"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Argo CD"


def test_an_answer_that_becomes_another_text_supersedes_it(read: Read) -> None:
    events = read(
        artifact("streaming_result", "Let me ", last=False, key="1"),
        artifact("streaming_result", "look.", append=True, last=False, key="1"),
        artifact("final_result", "Argo CD v2", key="2"),
        status("completed"),
    )
    first, narration_ended, second = events[0], events[1], events[2]
    assert isinstance(first, TextDelta)
    assert narration_ended == MessageEnded("argocd", first.message_id)
    assert isinstance(second, TextDelta)
    assert second.supersedes == first.message_id
    assert answer_of(events) == "Argo CD v2"


def test_of_several_answers_the_last_counts(read: Read) -> None:
    events = read(
        artifact("current_result", "So far", key="1"),
        artifact("final_result", "All of it", key="2"),
        status("completed"),
    )
    assert answer_of(events) == "All of it"


def test_artifacts_that_grow_by_turns_are_replaced_once(read: Read) -> None:
    events = read(
        *(
            artifact(None, f"{key}{number} ", append=number > 0, last=False, key=key)
            for number in range(5)
            for key in ("a", "b")
        ),
        status("completed"),
    )
    assert answer_of(events) == "a0 a1 a2 a3 a4 \n\nb0 b1 b2 b3 b4 "
    assert len({event.message_id for event in events if isinstance(event, TextDelta)}) == 2


def test_a_task_at_the_end_repeats_and_adds_nothing(read: Read) -> None:
    again = [{"artifactId": "another-id", "name": "result", "parts": [words("All good")]}]
    events = read(artifact("result", "All good", key="1"), task("completed", artifacts=again))
    assert answer_of(events) == "All good"


def test_a_replaced_artifact_counts_as_it_last_was(read: Read) -> None:
    events = read(
        artifact("current_result", "Draft", last=False),
        artifact("current_result", "Final"),
        status("completed"),
    )
    assert answer_of(events) == "Final"


def test_an_agent_that_answers_with_a_message(read: Read) -> None:
    assert answer_of(read(message(words("Hello "), words("there")))) == "Hello there"


def test_an_agent_that_answers_with_a_whole_task(read: Read) -> None:
    whole = task("completed", artifacts=[{"artifactId": "1", "name": "result", "parts": [words("All good")]}])
    events = read(whole)
    assert answer_of(events) == "All good"
    assert events[0] == TextDelta("argocd", f"{TASK}:1:message:1", "All good")


def test_a_whole_task_whose_answer_is_only_in_its_history(read: Read) -> None:
    whole = task(
        "completed",
        history=[
            message(words("an older answer")),
            message(words("show version"), role="user"),
            message(words("🔧 Calling tool: **version**")),
            message(words("✅ Tool **version** completed")),
            message(words("v2")),
        ],
    )
    events = read(whole)
    assert [type(event) for event in events[:2]] == [ToolStarted, ToolFinished]
    assert answer_of(events) == "v2"
    assert decode_task(in_0_3(whole).task, "argocd") == events


def test_an_earlier_answer_in_the_history_is_not_this_one(read: Read) -> None:
    history = [
        message(words("an older answer")),
        message(words("show version"), role="user"),
        message(words("🔧 Calling tool: **version**")),
    ]
    assert answer_of(read(task("completed", history=history))) == "Argocd completed the task without a text."


def test_history_counts_only_where_nothing_streamed(read: Read) -> None:
    whole = task("completed", history=[message(words("🔧 Calling tool: **b**")), message(words("From history"))])
    for streamed in (status("working", "Nearly done"), artifact("result", "Nearly done")):
        events = read(streamed, whole)
        assert answer_of(events) == "Nearly done"
        assert not any(isinstance(event, ToolStarted) for event in events)
    assert answer_of(read(status("working", "🔧 Calling tool: **a**"), whole)) == "From history"


def test_an_artifact_keeps_its_name_while_it_grows(read: Read) -> None:
    events = read(
        artifact("final_result", "v", last=False, key="1"),
        artifact("notes", "some notes", key="2"),
        artifact(None, "2", append=True, key="1"),
        status("completed"),
    )
    assert answer_of(events) == "v2"


def test_a_plan_is_no_answer(read: Read) -> None:
    for name in ("execution_plan_update", "execution_plan_status_update"):
        assert answer_of(read(artifact(name, "The plan"), status("completed", "Done"))) == "Done"


def test_a_status_is_the_answer_as_it_was_written(read: Read) -> None:
    assert answer_of(read(status("working", " two\n lines \n"), status("completed"))) == " two\n lines \n"


def test_data_is_an_answer_too(read: Read) -> None:
    parts = [words("Pods:"), {"kind": "data", "data": {"pods": 3}}]
    assert answer_of(read(artifact("result", "", parts=parts), status("completed"))) == 'Pods:\n{"pods": 3}'


def test_an_agent_that_completes_silently_is_said_to_have(read: Read) -> None:
    assert (
        answer_of(read(task(), status("working"), status("completed"))) == "Argocd completed the task without a text."
    )


def test_calls_left_open_end_as_the_task_ends(read: Read) -> None:
    events = read(
        status("working", "🔧 Calling tool: **a**"),
        status("working", "🔧 Calling tool: **b**"),
        status("completed", "Done"),
    )
    assert [(event.tool, event.ok) for event in events if isinstance(event, ToolFinished)] == [("b", True), ("a", True)]
    failed = read(status("working", "🔧 Calling tool: **a**"), status("failed", "Quota exceeded"))
    assert [type(event) for event in failed] == [ToolStarted, ToolFinished, Failed]
    assert [event.ok for event in failed if isinstance(event, ToolFinished)] == [False]


def test_two_calls_of_one_tool_are_two_calls(read: Read) -> None:
    events = read(
        status("working", "🔧 Calling tool: **a**"),
        status("working", "🔧 Calling tool: **a**"),
        status("working", "✅ Tool **a** completed"),
        status("working", "❌ Tool **a** failed: no quota"),
        status("completed", "Done"),
    )
    starts = [event.call_id for event in events if isinstance(event, ToolStarted)]
    ends = [(event.call_id, event.ok, event.reason) for event in events if isinstance(event, ToolFinished)]
    assert len(set(starts)) == 2
    assert ends == [(starts[0], True, None), (starts[1], False, "no quota")]


def test_an_end_without_a_start_is_a_whole_call(read: Read) -> None:
    events = read(status("working", "✅ Tool **a** completed"), status("completed", "Done"))
    assert [type(event) for event in events[:2]] == [ToolStarted, ToolFinished]


def test_the_end_of_a_call_is_known_by_its_name_in_any_case(read: Read) -> None:
    events = read(
        status("working", "🔧 Calling tool: **First**"),
        status("working", "🔧 Calling tool: **Second**"),
        status("working", "✅ second completed"),
        status("completed", "Done"),
    )
    ends = [(event.tool, event.call_id) for event in events if isinstance(event, ToolFinished)]
    assert ends == [("Second", f"{TASK}:1:call:2"), ("First", f"{TASK}:1:call:1")]


def test_progress_and_answer_in_one_text(read: Read) -> None:
    events = read(
        status("working", "🔧 Calling tool: **a**\n\n✅ Tool **a** completed\n\nIt is **3**.\nBye"), status("completed")
    )
    assert [type(event) for event in events[:2]] == [ToolStarted, ToolFinished]
    assert answer_of(events) == "It is **3**.\nBye"


def test_details_of_a_failed_call_are_not_the_answer(read: Read) -> None:
    events = read(
        status("working", "🔧 Calling tool: **a**"),
        status("working", "Working on it"),
        status("working", "❌ Tool **a** failed...\nTraceback (most recent call last):\n  File x"),
        status("completed"),
    )
    assert answer_of(events) == "Working on it"
    assert [event.reason for event in events if isinstance(event, ToolFinished)] == [None]


@pytest.mark.parametrize("text", ["✅ Deployment completed", "✅ All three checks completed", "🔧 The fix is in."])
def test_an_answer_that_looks_like_progress_is_the_answer(read: Read, text: str) -> None:
    assert answer_of(read(status("working", text), status("completed"))) == text


def test_notifications_as_artifacts(read: Read) -> None:
    events = read(
        artifact("tool_notification_start", "\n🔧 Calling argocd...\n", key="1"),
        artifact("tool_notification_end", "\n✅ argocd completed\n", key="2"),
        artifact("execution_plan_update", "⟦🎯 Execution Plan: x⟧", key="3"),
        artifact("complete_result", "v2", key="4"),
        status("completed"),
    )
    assert [(type(event), getattr(event, "tool", None)) for event in events[:2]] == [
        (ToolStarted, "argocd"),
        (ToolFinished, "argocd"),
    ]
    assert answer_of(events) == "v2"


def test_a_question_becomes_a_form_with_one_field(read: Read) -> None:
    reply = FormField("response", "multiline", "Your reply")
    for said, question in ((" Which cluster?\n", "Which cluster?"), (" ", "It needs more information to go on.")):
        (asked,) = read(status("input-required", said))
        form = Form(f"{TASK}:1:form:1", "Argocd needs your input", (reply,), question, agent="argocd")
        assert asked == InputRequired((form,))


def test_calls_are_done_and_the_message_ends_before_a_question(read: Read) -> None:
    events = read(
        status("working", "🔧 Calling tool: **a**"),
        artifact("final_result", "So far", last=False),
        status("input-required", "Which cluster?"),
    )
    call, said = f"{TASK}:1:call:1", f"{TASK}:1:message:2"
    assert events[:-1] == [
        ToolStarted("argocd", "a", call),
        TextDelta("argocd", said, "So far"),
        ToolFinished("argocd", "a", call, True),
        MessageEnded("argocd", said),
    ]


FORM_DATA = {
    "user_input": True,
    "input_title": "Create repo",
    "input_description": "A few details",
    "input_fields": [
        {"field_name": "name", "field_description": "Its name"},
        {"field_name": "team", "field_values": ["a", "b"], "default_value": 2},
    ],
}


@pytest.mark.parametrize("place", ["status", "artifact"])
def test_a_form_stays_a_form(read: Read, place: str) -> None:
    data = {"kind": "data", "data": FORM_DATA}
    items = (
        [status("input-required", "Please fill in", data)]
        if place == "status"
        else [artifact("UserInputMetaData", "", parts=[data]), status("input-required", "Please fill in")]
    )
    (asked,) = read(*items)
    assert isinstance(asked, InputRequired)
    (form,) = asked.forms
    assert (form.title, form.description) == ("Create repo", "A few details")
    assert form.fields == (
        FormField("name", "text", "Its name"),
        FormField("team", "select", "", ("a", "b"), 2),
    )
    assert form.form_id


def test_a_form_keeps_its_id_and_gets_the_agent_and_a_title(read: Read) -> None:
    def data(**form: Any) -> Item:
        return {"kind": "data", "data": {"user_input": True, **form}}

    first = artifact("UserInputMetaData", "", key="1", parts=[data(input_title="Draft")])
    changed = artifact("UserInputMetaData", "", key="1", parts=[data(form_id="f1", agent="jira")])
    second = artifact("UserInputMetaData", "", key="2", parts=[data(form_id="f2", input_title="Size?")])
    forms = (Form("f1", "Argocd needs your input", agent="argocd"), Form("f2", "Size?", agent="argocd"))
    assert read(first, changed, second, status("input-required", "Please")) == [InputRequired(forms)]
    said = status("input-required", "Please", data(form_id="f3", input_title="Name?"))
    assert read(first, said) == [InputRequired((Form("f3", "Name?", agent="argocd"),))]


def test_a_parked_task_as_a_whole_asks(read: Read) -> None:
    parked = task()
    parked["status"] = {"state": "input-required", "message": message(words("Which cluster?"))}
    (asked,) = read(parked)
    assert isinstance(asked, InputRequired)
    # At the beginning of the next turn it only says where the task was.
    assert answer_of(read(parked, status("working"), status("completed", "Done"), turn=2)) == "Done"


def test_each_turn_has_ids_of_its_own(read: Read) -> None:
    items = (status("working", "🔧 Calling tool: **a**"), status("completed", "Done"))

    def made_up(turn: int) -> set[str]:
        events = read(*items, turn=turn)
        return {getattr(event, "call_id", None) or getattr(event, "message_id", "") for event in events} - {""}

    assert len(made_up(1)) == 2
    assert made_up(1) == made_up(1)
    assert made_up(1).isdisjoint(made_up(2))
    assert made_up(2) == {f"{TASK}:2:call:1", f"{TASK}:2:message:2"}


def test_an_answer_without_a_task_takes_its_ids_from_the_message(read: Read) -> None:
    alone = {key: value for key, value in message(words("Hi")).items() if key != "taskId"}
    assert read(alone)[0] == TextDelta("argocd", f"{alone['messageId']}:1:message:1", "Hi")
    data = {"kind": "data", "data": {"pods": 3}}
    assert answer_of(read(message(data))) == '{"pods": 3}'


@pytest.mark.parametrize(
    ("state", "code", "silent", "reason"),
    [
        ("failed", "agent", "Argocd failed without saying why.", "the agent failed"),
        ("rejected", "rejected", "Argocd refused the request.", "the agent refused"),
        ("auth-required", "auth_required", "Argocd needs you to sign in first.", "not signed in"),
    ],
)
def test_failures_carry_the_agent_s_words_as_one_sentence(
    read: Read, state: str, code: str, silent: str, reason: str
) -> None:
    (failed,) = read(status(state, "No\nquota. password=hunter2hunter2 " + "x" * 400))
    assert isinstance(failed, Failed)
    assert failed.code == code
    assert failed.message.startswith("No quota.")
    assert "hunter2" not in failed.message
    assert len(failed.message) == 300
    call = f"{TASK}:1:call:1"
    assert read(status("working", "🔧 Calling tool: **a**"), status(state)) == [
        ToolStarted("argocd", "a", call),
        ToolFinished("argocd", "a", call, False, reason),
        Failed(code, silent),
    ]


def test_a_credential_that_would_be_cut_off_is_not_shown(read: Read) -> None:
    token = "ghp_" + "abcdefghij0123456789" * 2
    (failed,) = read(status("failed", f"{'x' * 285},{token}"))
    assert isinstance(failed, Failed)
    assert "ghp_" not in failed.message
    _, finished, *_ = read(status("working", f"❌ Tool **a** failed: {'x' * 185},{token}"), status("failed"))
    assert isinstance(finished, ToolFinished)
    assert finished.reason is not None
    assert finished.reason.startswith("xxx")
    assert "ghp_" not in finished.reason
    assert len(finished.reason) <= 200


def test_a_failure_keeps_what_was_written(read: Read) -> None:
    events = read(artifact("final_result", "Half an ans", last=False), status("failed", "Out of memory"))
    assert isinstance(events[-2], MessageEnded)
    assert events[-1] == Failed("agent", "Out of memory", "Half an ans")


def test_a_cancelled_task_is_cancelled(read: Read) -> None:
    events = read(status("working", "🔧 Calling tool: **a**"), status("canceled", "Stopped"))
    call = f"{TASK}:1:call:1"
    assert events == [
        ToolStarted("argocd", "a", call),
        ToolFinished("argocd", "a", call, False, "canceled"),
        Canceled("argocd", "Stopped"),
    ]


def test_a_broken_stream_fails_and_keeps_what_was_written(read: Read) -> None:
    events = read(
        task(),
        status("working", "🔧 Calling tool: **a**"),
        artifact("final_result", "Half an ans", last=False),
    )
    assert [type(event) for event in events] == [ToolStarted, TextDelta, ToolFinished, MessageEnded, Failed]
    last = events[-1]
    assert isinstance(last, Failed)
    assert last == Failed(
        "stream_ended", "The connection to Argocd ended before its answer did. It may still be at work.", "Half an ans"
    )
    silent = read(artifact("final_result", " \n", last=False))
    assert isinstance(silent[-1], Failed)
    assert silent[-1].partial is None


def test_nothing_comes_after_the_end(read: Read) -> None:
    events = read(
        status("completed", "Done"),
        status("working", "🔧 Calling tool: **a**"),
        artifact("final_result", "Done, and more"),
        message(words("Even more")),
        status("completed", "Done again"),
        task("completed"),
    )
    assert answer_of(events) == "Done"
    assert len(events) == 3


texts = st.sampled_from(
    ["🔧 Calling tool: **a**", "✅ Tool **a** completed", "❌ Tool **a** failed", "✅ a completed", "Hm", "", "x\ny"]
)
updates = st.one_of(
    st.builds(status, st.sampled_from(["submitted", "working", "unknown"]), st.none() | texts),
    st.builds(
        artifact,
        st.sampled_from([None, "current_result", "final_result", "tool_notification_start", "streaming_result"]),
        texts,
        append=st.booleans(),
        last=st.booleans(),
        key=st.sampled_from(["1", "2", "3"]),
    ),
    st.builds(task, st.sampled_from(["submitted", "working"])),
)
endings = st.one_of(
    st.none(),
    st.builds(
        status,
        st.sampled_from(["completed", "failed", "canceled", "rejected", "input-required", "auth-required"]),
        st.none() | texts,
    ),
    st.builds(task, st.just("completed")),
    st.builds(message, texts.map(words)),
)


@given(items=st.lists(updates, max_size=10), ending=endings)
@settings(max_examples=150, deadline=None)
def test_whatever_it_sends_becomes_a_run_that_keeps_the_rules(items: list[Item], ending: Item | None) -> None:
    decoder = Decoder("argocd")
    sent = [*items, ending] if ending else items
    events = [event for item in sent for event in decoder.feed(in_0_3(item))] + decoder.finish()

    started = [event.call_id for event in events if isinstance(event, ToolStarted)]
    ended = [event.call_id for event in events if isinstance(event, ToolFinished)]
    assert sorted(started) == sorted(ended)
    assert len(set(started)) == len(started)
    opened = dict.fromkeys(event.message_id for event in events if isinstance(event, TextDelta))
    assert list(opened) == [event.message_id for event in events if isinstance(event, MessageEnded)]
    assert [isinstance(event, FinalResult | Failed | Canceled | InputRequired) for event in events] == (
        [False] * (len(events) - 1) + [True]
    )
    if isinstance(events[-1], FinalResult):
        assert answer_of(events).strip()
