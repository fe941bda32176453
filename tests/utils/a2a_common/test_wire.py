"""What goes over the wire, literally: names, texts, flags, metadata."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Role, Task, TaskArtifactUpdateEvent, TaskState, TaskStatusUpdateEvent
from google.protobuf.json_format import MessageToDict, MessageToJson

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    Failed,
    FieldRules,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    MessageEnded,
    PlanStep,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.utils.a2a_common.codec.decoder import decode_updates
from ai_platform_engineering.utils.a2a_common.codec.forms import read_form
from ai_platform_engineering.utils.a2a_common.codec.values import set_value
from ai_platform_engineering.utils.a2a_common.wire import (
    Decoder,
    StreamState,
    WireEvent,
    begin,
    decode_task,
    encode,
    metadata_of,
    seq_of,
    stamp,
)


@pytest.fixture
def state() -> StreamState:
    return StreamState("task-1", "context-1", "trace-1", clock=lambda: 1_700_000_000.25)


def one_artifact(state: StreamState, event: Event) -> TaskArtifactUpdateEvent:
    (update,) = encode(state, event)
    assert isinstance(update, TaskArtifactUpdateEvent)
    return update


def metadata(update: WireEvent) -> dict[str, Any]:
    return MessageToDict(metadata_of(update))


def text(update: TaskArtifactUpdateEvent) -> str:
    return "".join(part.text for part in update.artifact.parts)


def flags(update: WireEvent) -> tuple[bool, bool]:
    assert isinstance(update, TaskArtifactUpdateEvent)
    return update.append, update.last_chunk


@pytest.mark.parametrize(
    ("event", "name", "shown", "description"),
    [
        (
            AgentStarted("argocd", "c1"),
            "tool_notification_start",
            "🔧 Supervisor: Calling Agent Argocd...",
            "Tool call started: argocd",
        ),
        (
            ToolStarted("argocd", "version_service__version", "c2", "c1"),
            "tool_notification_start",
            "🔧 Argocd: Calling tool: Version_Service__Version",
            "Tool call started: version_service__version",
        ),
        (
            ToolFinished("argocd", "version_service__version", "c2", True, None, "c1"),
            "tool_notification_end",
            "✅ Argocd: Tool Version_Service__Version completed",
            "Tool call completed: version_service__version",
        ),
        (
            ToolFinished("argocd", "sync", "c2", False, "no such application", "c1"),
            "tool_notification_end",
            "❌ Argocd: Tool Sync failed: no such application",
            "Tool call failed: sync",
        ),
        (
            AgentFinished("argocd", "c1", True),
            "tool_notification_end",
            "✅ Supervisor: Argocd completed",
            "Tool call completed: argocd",
        ),
        (
            AgentFinished("argocd", "c1", False, "it cannot be reached"),
            "tool_notification_end",
            "❌ Supervisor: Argocd failed: it cannot be reached",
            "Tool call failed: argocd",
        ),
        (
            AgentFinished("argocd", "c1", False),
            "tool_notification_end",
            "❌ Supervisor: Argocd failed",
            "Tool call failed: argocd",
        ),
    ],
)
def test_notifications_name_who_does_what(
    state: StreamState, event: Event, name: str, shown: str, description: str
) -> None:
    update = one_artifact(state, event)
    assert update.artifact.name == name
    assert text(update) == shown
    assert update.artifact.description == description
    assert flags(update) == (False, False)


def test_a_notification_carries_who_what_and_where_it_belongs(state: StreamState) -> None:
    started = one_artifact(state, AgentStarted("github", "c1", plan_step_id="s1"))
    assert metadata(started) == {
        "source_agent": "github",
        "event": "agent_started",
        "trace_id": "trace-1",
        "call_id": "c1",
        "tool_name": "github",
        "plan_step_id": "s1",
    }
    finished = one_artifact(state, ToolFinished("github", "search", "c2", False, "timeout", "c1", "s1"))
    assert metadata(finished) == {
        "source_agent": "github",
        "event": "tool_finished",
        "trace_id": "trace-1",
        "call_id": "c2",
        "parent_call_id": "c1",
        "tool_name": "search",
        "plan_step_id": "s1",
        "ok": False,
        "reason": "timeout",
    }


def test_a_notification_shows_a_reason_as_one_plain_line(state: StreamState) -> None:
    reason = "**Traceback**\n  File `x.py`\n" + "word " * 200
    shown = text(one_artifact(state, ToolFinished("argocd", "sync", "c1", False, reason)))
    assert shown.startswith("❌ Argocd: Tool Sync failed: Traceback File x.py word")
    assert "\n" not in shown
    assert len(shown) < 250


def test_each_notification_is_an_artifact_of_its_own(state: StreamState) -> None:
    updates = [
        one_artifact(state, event)
        for event in (
            AgentStarted("argocd", "c1"),
            ToolStarted("argocd", "sync", "c2"),
            ToolFinished("argocd", "sync", "c2", True),
            AgentFinished("argocd", "c1", True),
        )
    ]
    assert len({update.artifact.artifact_id for update in updates}) == 4


def test_the_plan_is_one_artifact_that_changes(state: StreamState) -> None:
    steps = (
        PlanStep("s1", "Search for tickets", "pending", 1, "jira"),
        PlanStep("s2", "[GitHub] List issues", "pending", 2, "github"),
        PlanStep("s3", "Compare both", "pending", 3),
    )
    first = one_artifact(state, PlanUpdated(steps, "Compare issues"))
    later_steps = (
        PlanStep("s3", "Compare both", "in_progress", 3),
        PlanStep("s1", "Search for tickets", "completed", 1, "jira"),
        PlanStep("s2", "[GitHub] List issues", "failed", 2, "github"),
    )
    later = one_artifact(state, PlanUpdated(later_steps, "Compare issues"))

    assert first.artifact.name == "execution_plan_update"
    assert later.artifact.name == "execution_plan_status_update"
    assert first.artifact.artifact_id == later.artifact.artifact_id
    assert flags(first) == flags(later) == (False, False)
    assert text(first).splitlines() == [
        "⟦🎯 Execution Plan: Compare issues⟧",
        "[Jira] Search for tickets",
        "[GitHub] List issues",
        "Compare both",
    ]
    assert text(later).splitlines()[1:] == [
        "[Jira] Search for tickets (done)",
        "[GitHub] List issues (failed)",
        "Compare both (in progress)",
    ]
    data = MessageToDict(first.artifact.parts[1].data)
    assert data["steps"][0] == {
        "id": "s1",
        "title": "Search for tickets",
        "agent": "jira",
        "status": "pending",
        "order": 1.0,
    }


def test_a_plan_without_a_title_still_reads_as_one(state: StreamState) -> None:
    shown = text(one_artifact(state, PlanUpdated((PlanStep("s1", "Look", "pending", 1),))))
    assert shown == "⟦🎯 Execution Plan: 1 step⟧\nLook"


def test_a_message_opens_grows_and_is_closed(state: StreamState) -> None:
    updates = [
        one_artifact(state, event)
        for event in (
            TextDelta(SUPERVISOR, "m1", "The ", supersedes="m0"),
            TextDelta(SUPERVISOR, "m1", "version"),
            MessageEnded(SUPERVISOR, "m1"),
        )
    ]
    assert [update.artifact.name for update in updates] == ["streaming_result"] * 3
    assert len({update.artifact.artifact_id for update in updates}) == 1
    assert [flags(update) for update in updates] == [(False, False), (True, False), (True, True)]
    assert [text(update) for update in updates] == ["The ", "version", ""]
    assert metadata(updates[0])["message_id"] == "m1"
    assert metadata(updates[0])["supersedes"] == "m0"
    assert "supersedes" not in metadata(updates[1])


def test_a_message_without_text_opens_and_closes_at_once(state: StreamState) -> None:
    assert flags(one_artifact(state, MessageEnded(SUPERVISOR, "m1"))) == (False, True)


@pytest.mark.parametrize(
    ("server", "speaker", "name"),
    [
        (SUPERVISOR, SUPERVISOR, "streaming_result"),
        (SUPERVISOR, "argocd", "sub_agent_result"),
        ("argocd", "argocd", "streaming_result"),
    ],
)
def test_a_server_calls_its_own_text_the_result(server: str, speaker: str, name: str) -> None:
    state = StreamState("task-1", "context-1", "trace-1", server)
    update = one_artifact(state, TextDelta(speaker, "m1", "x"))
    assert update.artifact.name == name
    assert metadata(update)["source_agent"] == speaker


def test_a_run_begins_with_working(state: StreamState) -> None:
    (update,) = begin(state)
    assert isinstance(update, TaskStatusUpdateEvent)
    assert update.status.state == TaskState.TASK_STATE_WORKING
    assert update.status.timestamp.ToDatetime(UTC) == datetime.fromtimestamp(1_700_000_000.25, UTC)
    assert metadata(update) == {"source_agent": "supervisor", "event": "working", "trace_id": "trace-1"}


def test_an_answer_is_whole_and_then_the_task_is_completed(state: StreamState) -> None:
    result, status = encode(state, FinalResult("Argo CD 2.9", "m1", "recursion_limit"))
    assert isinstance(result, TaskArtifactUpdateEvent)
    assert result.artifact.name == "final_result"
    assert text(result) == "Argo CD 2.9"
    assert flags(result) == (False, True)
    assert metadata(result)["answer_message_id"] == "m1"
    assert metadata(result)["limit"] == "recursion_limit"
    assert isinstance(status, TaskStatusUpdateEvent)
    assert status.status.state == TaskState.TASK_STATE_COMPLETED
    assert status.status.HasField("timestamp")
    assert not status.status.HasField("message")
    assert metadata(status) == {"source_agent": "supervisor", "event": "completed", "trace_id": "trace-1"}


def test_a_failure_shows_what_there_is_and_says_the_sentence(state: StreamState) -> None:
    partial, status = encode(state, Failed("timeout", "It took too long. Try again.", "Two of three tickets"))
    assert isinstance(partial, TaskArtifactUpdateEvent)
    assert partial.artifact.name == "partial_result"
    assert text(partial) == "Two of three tickets"
    assert flags(partial) == (False, True)
    assert isinstance(status, TaskStatusUpdateEvent)
    assert status.status.state == TaskState.TASK_STATE_FAILED
    assert status.status.message.parts[0].text == "It took too long. Try again."
    assert status.status.message.role == Role.ROLE_AGENT
    assert metadata(status)["error_code"] == "timeout"
    assert len(encode(state, Failed("timeout", "It took too long."))) == 1


def test_a_cancel_says_who(state: StreamState) -> None:
    (status,) = encode(state, Canceled("alice"))
    assert isinstance(status, TaskStatusUpdateEvent)
    assert status.status.state == TaskState.TASK_STATE_CANCELED
    assert metadata(status)["by"] == "alice"


def test_each_form_is_an_artifact_and_the_question_is_the_status(state: StreamState) -> None:
    repo = Form(
        "f1",
        "Create GitHub Repo",
        (FormField("name", "text", "Its name"), FormField("stars", "number", default_value=3)),
        "A new repository",
        "I need a few details.",
        "github",
    )
    approval = Form("f2", "Approve", response="May I?", action_requests=({"name": "sync", "args": {"n": 2}},))
    first, second, status = encode(state, InputRequired((repo, approval)))
    assert isinstance(first, TaskArtifactUpdateEvent)
    assert isinstance(second, TaskArtifactUpdateEvent)
    assert first.artifact.name == second.artifact.name == "UserInputMetaData"
    assert first.artifact.artifact_id != second.artifact.artifact_id
    assert flags(first) == flags(second) == (False, True)
    assert text(first) == "I need a few details."
    assert MessageToDict(first.artifact.parts[1].data) == {
        "user_input": True,
        "form_id": "f1",
        "agent": "github",
        "input_title": "Create GitHub Repo",
        "input_description": "A new repository",
        "response": "I need a few details.",
        "input_fields": [
            {
                "field_name": "name",
                "field_type": "text",
                "field_description": "Its name",
                "field_values": None,
                "default_value": None,
                "required": True,
                "value": None,
            },
            {
                "field_name": "stars",
                "field_type": "number",
                "field_description": "",
                "field_values": None,
                "default_value": 3.0,
                "required": True,
                "value": None,
            },
        ],
    }
    assert metadata(first)["source_agent"] == "github"
    assert metadata(second)["source_agent"] == "supervisor"
    assert isinstance(status, TaskStatusUpdateEvent)
    assert status.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
    assert status.status.message.parts[0].text == "I need a few details.\n\nMay I?"


def test_form_numbers_come_back_as_they_were(state: StreamState) -> None:
    form = Form(
        "f1",
        "Scale",
        (FormField("replicas", "number", default_value=3, value=2.5), FormField("now", "boolean", value=True)),
        action_requests=({"args": {"replicas": 3, "zones": [1, 2], "force": False}},),
    )
    decoder = Decoder(SUPERVISOR)
    events = [event for update in encode(state, InputRequired((form,))) for event in decoder.feed(update)]
    (asked,) = events
    assert isinstance(asked, InputRequired)
    fields = asked.forms[0].fields
    assert type(fields[0].default_value) is int
    assert type(fields[0].value) is float
    assert fields[1].value is True
    arguments = asked.forms[0].action_requests[0]["args"]
    assert arguments == {"replicas": 3, "zones": [1, 2], "force": False}
    assert [type(zone) for zone in arguments["zones"]] == [int, int]
    assert arguments["force"] is False


def asked_again(state: StreamState, form: Form) -> Form:
    decoder = Decoder(SUPERVISOR)
    (asked,) = [event for update in encode(state, InputRequired((form,))) for event in decoder.feed(update)]
    assert isinstance(asked, InputRequired)
    return asked.forms[0]


def test_only_rules_that_are_set_and_errors_that_are_there_travel(state: StreamState) -> None:
    fields = (
        FormField("replicas", "number", rules=FieldRules(minimum=0, integer=True), error="`replicas` is too low."),
        FormField("name", rules=FieldRules(min_length=2, max_length=40, pattern="[a-z]+")),
        FormField("note", rules=FieldRules(), error=""),
    )
    artifact = encode(state, InputRequired((Form("f1", "Scale", fields),)))[0]
    assert isinstance(artifact, TaskArtifactUpdateEvent)
    replicas, name, note = MessageToDict(artifact.artifact.parts[1].data)["input_fields"]
    assert replicas["validation"] == {"minimum": 0, "integer": True}
    assert replicas["field_error"] == "`replicas` is too low."
    assert name["validation"] == {"min_length": 2, "max_length": 40, "pattern": "[a-z]+"}
    assert "field_error" not in name
    assert "validation" not in note
    assert note["field_error"] == ""


def test_rules_come_back_with_their_integers(state: StreamState) -> None:
    rules = FieldRules(minimum=1, maximum=2.5, integer=True, min_length=0, max_length=7)
    read = asked_again(state, Form("f1", "Scale", (FormField("n", rules=rules),))).fields[0].rules
    assert read == rules
    assert read is not None
    assert [type(rule) for rule in (read.minimum, read.maximum, read.min_length, read.max_length)] == [
        int,
        float,
        int,
        int,
    ]
    huge = FieldRules(minimum=-12345678901234567891, maximum=12345678901234567891)
    assert asked_again(state, Form("f1", "Scale", (FormField("n", rules=huge),))).fields[0].rules == huge


def test_invalid_rules_are_ignored() -> None:
    odd = {"minimum": True, "maximum": "many", "min_length": -1, "max_length": 2.5, "integer": 1, "pattern": ["x"]}
    for validation in (odd, [], "x", {}, {"minimum": float("nan")}, {"max_length": float("inf")}, {"steps": 3}):
        field = {"field_name": "n", "validation": validation, "field_error": None}
        assert read_form({"input_fields": [field]}).fields[0].rules is None


def test_what_json_cannot_hold_exactly_is_shown_as_text(state: StreamState) -> None:
    arguments = {"id": 12345678901234567891, "ratio": float("nan"), "when": datetime(2025, 1, 2, tzinfo=UTC), 7: None}
    updates = encode(state, InputRequired((Form("f1", "Approve", action_requests=(arguments,)),)))
    assert all(MessageToJson(update) for update in updates)
    decoder = Decoder(SUPERVISOR)
    (asked,) = [event for update in updates for event in decoder.feed(update)]
    assert isinstance(asked, InputRequired)
    assert asked.forms[0].action_requests[0] == {
        "id": "12345678901234567891",
        "ratio": "nan",
        "when": "2025-01-02 00:00:00+00:00",
        "7": None,
    }


def test_broken_unicode_of_a_model_does_not_break_the_stream(state: StreamState) -> None:
    broken = TextDelta(SUPERVISOR, "m1", "a\ud83db")
    assert text(one_artifact(state, broken)) == "a\ufffdb"
    assert flags(one_artifact(state, TextDelta(SUPERVISOR, "m1", "c")))[0]
    asked = encode(state, InputRequired((Form("f1", "A\udc00", (FormField("n", value=["\ud83d"]),)),)))
    assert len(asked) == 2


def test_a_number_is_stamped_where_the_metadata_is(state: StreamState) -> None:
    artifact, status = encode(state, FinalResult("x", "m1"))
    assert seq_of(artifact) is None
    stamp(artifact, 7)
    stamp(status, 8)
    assert (seq_of(artifact), seq_of(status)) == (7, 8)
    assert metadata(artifact)["seq"] == 7
    assert metadata(status)["seq"] == 8


def test_unknown_kinds_and_keys_are_passed_over(state: StreamState) -> None:
    known = one_artifact(state, TextDelta(SUPERVISOR, "m1", "x"))
    known.artifact.metadata.update({"mood": "good", "deeply": {"nested": [1]}})
    unknown = one_artifact(state, TextDelta(SUPERVISOR, "m1", "x"))
    unknown.artifact.metadata.update({"event": "thought"})
    decoder = Decoder(SUPERVISOR)
    assert decoder.feed(unknown) == []
    assert decoder.feed(known) == [TextDelta(SUPERVISOR, "m1", "x")]


def test_nothing_is_read_from_texts_and_names(state: StreamState) -> None:
    update = one_artifact(state, ToolStarted("argocd", "sync", "c1"))
    update.artifact.name = "something_else"
    update.artifact.parts[0].text = "✅ Jira: Tool Search completed"
    assert Decoder("argocd").feed(update) == [ToolStarted("argocd", "sync", "c1")]


def test_a_stream_that_breaks_ends_every_call_and_fails(state: StreamState) -> None:
    decoder = Decoder("argocd")
    for event in (AgentStarted("argocd", "c1"), ToolStarted("argocd", "sync", "c2", "c1")):
        decoder.feed(one_artifact(state, event))
    events = decoder.finish()
    assert events[:2] == [
        ToolFinished("argocd", "sync", "c2", False, "the connection ended", "c1"),
        AgentFinished("argocd", "c1", False, "the connection ended"),
    ]
    assert events[2:] == [
        Failed("stream_ended", "The connection to Argocd ended before its answer did. It may still be at work.")
    ]
    assert decoder.finish() == []


def test_a_stream_that_breaks_keeps_the_part_that_came(state: StreamState) -> None:
    decoder = Decoder("argocd")
    decoder.feed(encode(state, Failed("timeout", "It took too long.", "Half"))[0])
    (failed,) = decoder.finish()
    assert isinstance(failed, Failed)
    assert failed.partial == "Half"


def test_a_task_of_ours_that_completes_without_an_answer_has_failed(state: StreamState) -> None:
    decoder = Decoder("argocd")
    _, completed = encode(state, FinalResult("x", "m1"))
    assert decoder.feed(completed) == []
    assert decoder.finish() == [Failed("empty_answer", "Argocd finished without an answer.")]


def test_a_server_of_ours_that_the_library_ends_has_failed(state: StreamState) -> None:
    decoder = Decoder("argocd")
    decoder.feed(begin(state)[0])
    decoder.feed(one_artifact(state, ToolStarted("argocd", "sync", "c1")))
    died = TaskStatusUpdateEvent(task_id="task-1", context_id="context-1")
    died.status.state = TaskState.TASK_STATE_FAILED
    end, failed = decoder.feed(died)
    assert end == ToolFinished("argocd", "sync", "c1", False, "the agent failed")
    assert isinstance(failed, Failed)
    assert decoder.finish() == []


def test_of_the_library_only_the_end_of_a_task_of_ours_counts(state: StreamState) -> None:
    decoder = Decoder("argocd")
    decoder.feed(begin(state)[0])
    working = TaskStatusUpdateEvent(task_id="task-1")
    working.status.state = TaskState.TASK_STATE_WORKING
    working.status.message.parts.add().text = "🔧 Calling tool: **a**"
    written = TaskArtifactUpdateEvent(task_id="task-1", append=True)
    written.artifact.parts.add().text = "Hello"
    over = Task(id="task-1")
    over.status.state = TaskState.TASK_STATE_COMPLETED
    assert [decoder.feed(item) for item in (working, written, over)] == [[], [], []]
    working.status.state = TaskState.TASK_STATE_FAILED
    working.status.ClearField("message")
    assert decode_updates("argocd", [*begin(state), working]) == [Failed("agent", "Argocd failed without saying why.")]


def test_keys_that_are_missing_are_empty(state: StreamState) -> None:
    def read(kind: str, *data: Any) -> list[Event]:
        update = TaskArtifactUpdateEvent()
        update.artifact.metadata.update({"event": kind, "source_agent": "argocd"})
        for value in data:
            set_value(update.artifact.parts.add().data, value)
        return Decoder("argocd").feed(update)

    assert read("text_delta") == [TextDelta("argocd", "", "")]
    assert read("message_ended") == [MessageEnded("argocd", "")]
    assert read("agent_started") == [AgentStarted("argocd", "")]
    assert read("agent_finished") == [AgentFinished("argocd", "", False)]
    assert read("tool_started") == [ToolStarted("argocd", "", "")]
    assert read("tool_finished") == [ToolFinished("argocd", "", "", False)]
    assert read("final_result") == [FinalResult("", "")]
    assert read("plan_updated") == read("plan_updated", {"steps": {}}) == [PlanUpdated(())]
    odd = {"id": 1, "status": "odd", "agent": 5, "order": "first"}
    assert read("plan_updated", {"title": 5, "steps": [7, odd, {"title": "T"}]}) == [
        PlanUpdated((PlanStep("1", "", "pending", 0), PlanStep("", "T", "pending", 1)), "5")
    ]
    canceled = TaskStatusUpdateEvent()
    canceled.metadata.update({"event": "canceled", "source_agent": "argocd"})
    canceled.status.state = TaskState.TASK_STATE_CANCELED
    assert Decoder("argocd").feed(canceled) == [Canceled("user")]


def test_the_task_that_opens_a_stream_says_nothing_new(state: StreamState) -> None:
    decoder = Decoder(SUPERVISOR)
    asked = InputRequired((Form("f1", "Name?"),))
    parked = Task(id="task-1", context_id="context-1")
    *forms, status = encode(state, asked)
    parked.artifacts.extend(form.artifact for form in forms if isinstance(form, TaskArtifactUpdateEvent))
    assert isinstance(status, TaskStatusUpdateEvent)
    parked.status.CopyFrom(status.status)
    assert decoder.feed(parked) == []
    assert decoder.feed(begin(state)[0]) == []
    answer = [event for update in encode(state, FinalResult("x", "m1")) for event in decoder.feed(update)]
    assert answer == [FinalResult("x", "m1")]
    assert decoder.finish() == []


def test_a_question_that_was_answered_does_not_end_the_stream(state: StreamState) -> None:
    decoder = Decoder("argocd")
    for update in [*encode(state, InputRequired((Form("f1", "Name?"),))), *begin(state)]:
        decoder.feed(update)
    (failed,) = decoder.finish()
    assert isinstance(failed, Failed)


def test_each_question_is_a_message_of_its_own(state: StreamState) -> None:
    asked = [encode(state, InputRequired((Form("f1", "Name?"),)))[-1] for _ in range(3)]
    assert len({status.status.message.message_id for status in asked if isinstance(status, TaskStatusUpdateEvent)}) == 3


def test_a_failed_task_keeps_its_code_where_updates_leave_no_metadata(state: StreamState) -> None:
    failure = Failed("timeout", "It took too long.")
    (status,) = encode(state, failure)
    assert isinstance(status, TaskStatusUpdateEvent)
    assert decode_task(Task(id="task-1", status=status.status)) == [failure]


def test_texts_of_notifications_have_no_line_breaks(state: StreamState) -> None:
    update = one_artifact(state, ToolStarted("argocd", "sync", "c1"))
    assert not re.search(r"^\s|\s$|\n", text(update))
