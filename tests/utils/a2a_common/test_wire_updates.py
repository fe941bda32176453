"""The whole of every update that an event becomes, and what encoding remembers of the updates before."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from ai_platform_engineering.events import (
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
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode, restore

Update = dict[str, Any]
IDS = {"taskId": "t", "contextId": "c"}
TIME = "2023-11-14T22:13:20.250Z"


def state(agent: str = "argocd") -> StreamState:
    return StreamState("t", "c", "trace", agent, clock=lambda: 1_700_000_000.25)


def metadata(kind: str, source: str = "argocd", **more: Any) -> Update:
    return {"source_agent": source, "event": kind, "trace_id": "trace", **more}


def artifact(key: str, name: str, text: str, metadata: Update, *, data: Any = None, **more: Any) -> Update:
    """An artifact update; `description` belongs to the artifact, other arguments to the update."""
    described = {"description": more.pop("description")} if "description" in more else {}
    parts = [{"text": text}, *([] if data is None else [{"data": data}])]
    body = {"artifactId": f"t:{key}", "name": name, **described, "parts": parts, "metadata": metadata}
    return {**IDS, "artifact": body, **more}


def status(state: str, metadata: Update, message: Update | None = None) -> Update:
    said = {} if message is None else {"message": message}
    return {**IDS, "status": {"state": f"TASK_STATE_{state}", "timestamp": TIME, **said}, "metadata": metadata}


def message(key: str, text: str, **more: Any) -> Update:
    return {"messageId": f"t:{key}", **IDS, "role": "ROLE_AGENT", "parts": [{"text": text}], **more}


def test_a_run_begins() -> None:
    assert [MessageToDict(update) for update in begin(state())] == [status("WORKING", metadata("working"))]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (
            TextDelta("argocd", "m1", "Hi", "c1", "m0"),
            [
                artifact(
                    "text:argocd:m1",
                    "streaming_result",
                    "Hi",
                    metadata("text_delta", message_id="m1", parent_call_id="c1", supersedes="m0"),
                )
            ],
        ),
        (
            MessageEnded("jira", "m1", "c1"),
            [
                artifact(
                    "text:jira:m1",
                    "sub_agent_result",
                    "",
                    metadata("message_ended", "jira", message_id="m1", parent_call_id="c1"),
                    lastChunk=True,
                )
            ],
        ),
        (
            AgentStarted("jira", "c1", "c0", "s1"),
            [
                artifact(
                    "call:c1:start",
                    "tool_notification_start",
                    "🔧 Argocd: Calling Agent Jira...",
                    metadata(
                        "agent_started", "jira", call_id="c1", parent_call_id="c0", plan_step_id="s1", tool_name="jira"
                    ),
                    description="Tool call started: jira",
                )
            ],
        ),
        (
            AgentFinished("jira", "c1", False, "no quota", "c0", "s1"),
            [
                artifact(
                    "call:c1:end",
                    "tool_notification_end",
                    "❌ Argocd: Jira failed: no quota",
                    metadata(
                        "agent_finished",
                        "jira",
                        call_id="c1",
                        parent_call_id="c0",
                        plan_step_id="s1",
                        tool_name="jira",
                        ok=False,
                        reason="no quota",
                    ),
                    description="Tool call failed: jira",
                )
            ],
        ),
        (
            ToolStarted("jira", "search", "c2", "c1", "s1", "triage"),
            [
                artifact(
                    "call:c2:start",
                    "tool_notification_start",
                    "🔧 Jira: Calling tool: Search",
                    metadata(
                        "tool_started",
                        "jira",
                        call_id="c2",
                        parent_call_id="c1",
                        plan_step_id="s1",
                        tool_name="search",
                        skill_name="triage",
                    ),
                    description="Tool call started: search",
                )
            ],
        ),
        (
            ToolFinished("jira", "search", "c2", True, None, "c1", "s1", "triage"),
            [
                artifact(
                    "call:c2:end",
                    "tool_notification_end",
                    "✅ Jira: Tool Search completed",
                    metadata(
                        "tool_finished",
                        "jira",
                        call_id="c2",
                        parent_call_id="c1",
                        plan_step_id="s1",
                        tool_name="search",
                        skill_name="triage",
                        ok=True,
                    ),
                    description="Tool call completed: search",
                )
            ],
        ),
        (
            PlanUpdated((PlanStep("s1", "Look", "pending", 2, "jira"), PlanStep("s2", "Tell", "failed", 1)), "A plan"),
            [
                artifact(
                    "plan",
                    "execution_plan_update",
                    "⟦🎯 Execution Plan: A plan⟧\nTell (failed)\n[Jira] Look",
                    metadata("plan_updated"),
                    data={
                        "title": "A plan",
                        "steps": [
                            {"id": "s1", "title": "Look", "agent": "jira", "status": "pending", "order": 2.0},
                            {"id": "s2", "title": "Tell", "agent": None, "status": "failed", "order": 1.0},
                        ],
                    },
                )
            ],
        ),
        (
            FinalResult("It is 3.1.", "m1", "recursion_limit"),
            [
                artifact(
                    "final_result",
                    "final_result",
                    "It is 3.1.",
                    metadata("final_result", answer_message_id="m1", limit="recursion_limit"),
                    lastChunk=True,
                ),
                status("COMPLETED", metadata("completed")),
            ],
        ),
        (
            Failed("timeout", "It took too long.", "Half"),
            [
                artifact("partial_result", "partial_result", "Half", metadata("partial_result"), lastChunk=True),
                status(
                    "FAILED",
                    metadata("failed", error_code="timeout"),
                    message("failure", "It took too long.", metadata=metadata("failed", error_code="timeout")),
                ),
            ],
        ),
        (
            Canceled("alice", "Not today."),
            [status("CANCELED", metadata("canceled", by="alice"), message("canceled", "Not today."))],
        ),
        (Canceled("alice"), [status("CANCELED", metadata("canceled", by="alice"))]),
        (
            InputRequired((Form("f1", "Name?", agent="jira"), Form("f2", "Size?"))),
            [
                artifact(
                    f"form:{form_id}",
                    "UserInputMetaData",
                    title,
                    metadata("input_required", source),
                    data={
                        "user_input": True,
                        "form_id": form_id,
                        "input_title": title,
                        "input_description": "",
                        "response": "",
                        "input_fields": [],
                        **({"agent": "jira"} if source == "jira" else {}),
                    },
                    lastChunk=True,
                )
                for form_id, title, source in (("f1", "Name?", "jira"), ("f2", "Size?", "argocd"))
            ]
            + [
                status(
                    "INPUT_REQUIRED",
                    metadata("input_required"),
                    message("question:1", "Name?\n\nSize?", metadata={"form_ids": ["f1", "f2"]}),
                )
            ],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_event_becomes_these_updates(event: Event, expected: list[Update]) -> None:
    assert [MessageToDict(update) for update in encode(state(), event)] == expected


@pytest.mark.parametrize(
    "event",
    [
        PlanUpdated((), "A plan"),
        TextDelta("argocd", "m1", "Hi"),
        InputRequired((Form("f1", "Name?"), Form("f2", "Size?"))),
        MessageEnded("argocd", "m2"),
        ToolStarted("argocd", "sync", "c1"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_was_sent_is_remembered_by_another_process(event: Event) -> None:
    first = state()
    sent = [*begin(first), *encode(first, event)]
    second = state()
    restore(second, sent)
    assert (second.has_plan, second.opened, second.questions) == (first.has_plan, first.opened, first.questions)
    assert encode(second, event) == encode(first, event)
