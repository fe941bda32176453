"""Stored tasks as JSON: events, the number to subscribe with, and what people decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Message, Part, Role, Task, TaskState, TaskStatus

from ai_platform_engineering.events import (
    Event,
    Failed,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    TextDelta,
    ToolStarted,
)
from ai_platform_engineering.events_json import decode_line, encode_line
from ai_platform_engineering.identity.principal import ANONYMOUS, KEY_HOLDER, Principal
from ai_platform_engineering.storage.event_log.memory_log import MemoryEventLog
from ai_platform_engineering.utils.a2a_common.codec.values import set_value
from ai_platform_engineering.utils.a2a_common.server.stored_conversations import task_json
from ai_platform_engineering.utils.a2a_common.wire import StreamState, begin, encode

REPOSITORY = Form("repo", "Create repository", (FormField("name"), FormField("private", "boolean", required=False)))
LOGIN = Form("login", "Log in", (FormField("api_key"),))
DELETION = Form("del", "Delete?", action_requests=({"name": "delete", "args": {"application": "search"}},))
STATE = StreamState("t", "c", "trace")


def said(words: str | Mapping[str, Any], user: str | None = None) -> Message:
    part = Part(text=words) if isinstance(words, str) else Part()
    if not isinstance(words, str):
        set_value(part.data, {"resume": dict(words)})
    message = Message(message_id="q2", task_id="t", context_id="c", role=Role.ROLE_USER, parts=[part])
    if user is not None:
        message.metadata["user"] = user
    return message


async def asked() -> MemoryEventLog:
    log = MemoryEventLog()
    question = Message(message_id="q1", role=Role.ROLE_USER, parts=[Part(text="help")])
    status = TaskStatus(state=TaskState.TASK_STATE_SUBMITTED)
    status.timestamp.GetCurrentTime()
    await log.create(Task(id="t", context_id="c", status=status, history=[question]))
    await log.append("t", begin(STATE))
    return log


async def write(log: MemoryEventLog, *events: Event) -> None:
    for event in events:
        await log.append("t", encode(STATE, event))


async def shown(log: MemoryEventLog) -> dict[str, Any]:
    (history,) = await log.histories("c")
    return task_json(history)


async def decided(form: Form, message: Message, caller: Principal = ANONYMOUS) -> dict[str, Any]:
    log = await asked()
    await write(log, InputRequired((form,)))
    await log.add_message("t", message, caller)
    assert (await shown(log))["decisions"] == [], "no event shows that the answer was accepted"
    await log.append("t", begin(STATE))
    return await shown(log)


async def test_events_have_the_format_of_recordings() -> None:
    log = await asked()
    assert (await shown(log))["events"] == [
        {"seq": 0, "at": 0.0, "event": "asked", "question": "help", "context_id": "c"}
    ]
    events = (TextDelta("supervisor", "m1", "Hi."), ToolStarted("github", "search", "call-1"), FinalResult("Hi.", "m1"))
    await write(log, *events)
    task = await shown(log)
    times = [line.pop("at") for line in task["events"]]
    assert times == sorted(times)
    assert [(line.pop("seq"), line) for line in task["events"][1:]] == [
        (2, {"event": "text_delta", "agent": "supervisor", "message_id": "m1", "text": "Hi."}),
        (3, {"event": "tool_started", "agent": "github", "tool": "search", "call_id": "call-1"}),
        (4, {"event": "final_result", "text": "Hi.", "answer_message_id": "m1"}),
    ]
    assert (task["state"], task["last_seq"], task["question"], task["message_id"]) == ("completed", 5, "help", "q1")
    assert decode_line(encode_line(events[1])).item == events[1]


@pytest.mark.parametrize(
    "event", [InputRequired((REPOSITORY, LOGIN)), Failed("timeout", "Too slow.", "Half."), FinalResult("All.", "m1")]
)
async def test_an_event_that_is_stored_in_parts_is_shown_when_it_is_complete(event: Event) -> None:
    log = await asked()
    *parts, status = encode(STATE, event)
    await log.append("t", parts)
    task = await shown(log)
    assert (task["last_seq"], len(task["events"]), task["state"]) == (1, 1, "working")
    await log.append("t", [status])
    task = await shown(log)
    assert (task["last_seq"], len(task["events"])) == (2 + len(parts), 2)


@pytest.mark.parametrize(
    ("form", "answer", "decision"),
    [
        (REPOSITORY, {"values": {"name": "demo"}}, {"kind": "values", "values": {"name": "demo"}}),
        (REPOSITORY, "name: demo\nprivate: yes", {"kind": "text", "values": {"name": "demo", "private": True}}),
        (REPOSITORY, {"cancel": True, "message": "later"}, {"kind": "cancel", "reason": "later"}),
        (LOGIN, {"values": {"api_key": "s3cret"}}, {"kind": "values", "values": {"api_key": "••••••"}}),
        (DELETION, {"decisions": [{"type": "approve", "remember": True}]}, {"kind": "approve", "always": True}),
        (DELETION, {"values": {"decision": "approve"}}, {"kind": "approve"}),
        (DELETION, "approve", {"kind": "approve"}),
        (
            DELETION,
            {"decisions": [{"type": "edit", "args": {"application": "web"}}]},
            {"kind": "edit", "values": {"application": "web"}},
        ),
        (DELETION, {"decisions": [{"type": "reject", "message": "no"}]}, {"kind": "reject", "reason": "no"}),
    ],
)
async def test_answers_to_forms_are_decisions(
    form: Form, answer: str | dict[str, Any], decision: dict[str, Any]
) -> None:
    task = await decided(form, said(answer))
    (found,) = task["decisions"]
    at = found.pop("at")
    assert task["created"] <= at
    defaults = {"form_id": form.form_id, "by": None, "values": {}, "reason": None, "always": False}
    assert found == defaults | decision
    assert "s3cret" not in str(task)
    # The line of the answer is before the events that follow it, and has no number of an event that follows.
    assert (task["events"][-1]["event"], task["events"][-1]["seq"]) == ("asked", task["last_seq"] - 1)


@pytest.mark.parametrize(
    ("user", "caller", "by"),
    [
        ("somebody", Principal("statement", "slack:T1/U1"), "slack:T1/U1"),
        (None, Principal("token", "ada"), "ada"),
        ("somebody", KEY_HOLDER, "key"),
        ("somebody", ANONYMOUS, "somebody"),
        (None, ANONYMOUS, None),
    ],
)
async def test_a_decision_names_the_person_who_made_it(user: str | None, caller: Principal, by: str | None) -> None:
    task = await decided(DELETION, said({"decisions": [{"type": "approve"}]}, user), caller)
    assert [decision["by"] for decision in task["decisions"]] == [by]


async def test_an_answer_that_was_refused_is_no_decision() -> None:
    task = await decided(LOGIN, said({"values": {"api_key": "s3cret", "unknown": 1}}))
    assert task["decisions"] == []
    assert {*task["events"][-1]["question"].splitlines()} == {"api_key: ••••••", "unknown: 1"}
    task = await decided(REPOSITORY, said({"values": {"private": "perhaps"}}))
    assert task["decisions"] == []
    task = await decided(DELETION, said("what does that do?"))
    assert task["decisions"] == []
    assert task["events"][-1]["question"] == "what does that do?"
