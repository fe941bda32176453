"""The pieces of updates: texts for people, values in protobuf, parts, and forms as data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from a2a.types.a2a_pb2 import Part, StreamResponse
from a2a.utils.proto_utils import parse_lenient
from google.protobuf.struct_pb2 import Value

from ai_platform_engineering.events import SUPERVISOR, FieldRules, Form, FormField, PlanStep
from ai_platform_engineering.utils.a2a_common.codec import labels, stream_json
from ai_platform_engineering.utils.a2a_common.codec.forms import is_form_data, read_form
from ai_platform_engineering.utils.a2a_common.codec.parts import content_of, data_of, text_of
from ai_platform_engineering.utils.a2a_common.codec.progress import Finished, Started, read_line
from ai_platform_engineering.utils.a2a_common.codec.stream_json import read_item
from ai_platform_engineering.utils.a2a_common.codec.values import get_number, get_value, scrub, set_value

# Texts


@pytest.mark.parametrize(
    ("text", "limit", "line"),
    [
        (" a\n\tb ", 10, "a b"),
        ("a" * 10, 10, "a" * 10),
        ("a" * 11, 10, "a" * 9 + "…"),
        ("aaaaa bbbbbbbbb", 10, "aaaaa…"),
        ("aaaa bbbbbbbbbb", 10, "aaaa bbbb…"),
        ("a b cccc ddddd", 10, "a b cccc…"),
        ("aaaaaaaa bbb", 10, "aaaaaaaa…"),
    ],
)
def test_a_long_text_is_cut_at_a_word_in_its_second_half(text: str, limit: int, line: str) -> None:
    assert labels.one_line(text, limit) == line


def test_a_plan_in_words() -> None:
    steps = [
        PlanStep("s2", "[jira] Look", "in_progress", 2, "jira"),
        PlanStep("s1", "Look\nthere", "completed", 1, "aws_cost"),
        PlanStep("s3", "Tell", "failed", 3),
    ]
    assert labels.plan("", steps) == (
        "⟦🎯 Execution Plan: 3 steps⟧\n[Aws_Cost] Look there (done)\n[jira] Look (in progress)\nTell (failed)"
    )
    assert labels.plan("x" * 201, []) == f"⟦🎯 Execution Plan: {'x' * 199}…⟧"
    assert labels.plan_step(PlanStep("s", "x" * 201, "pending", 1)) == "x" * 199 + "…"


def test_the_question_of_a_form_and_of_several() -> None:
    everything = Form("f", "Title", description="Description", response="Response")
    several = [everything, Form("f", "Title", description="Description"), Form("f", "Title"), Form("f", ""), everything]
    assert labels.questions(several) == "Response\n\nDescription\n\nTitle\n\nMore information is needed."


def test_a_server_that_was_stopped() -> None:
    assert labels.stopped(SUPERVISOR) == "The supervisor was stopped while it worked on this."
    assert labels.stopped("aws_cost") == "The Aws_Cost agent was stopped while it worked on this."


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (" 🔧 Calling tool: **`X`** ", Started("X")),
        ("🔧 Argocd: Calling agent jira…", Started("jira")),
        ("🔧 calling jira...", Started("jira")),
        ("✅ Tool **x y** completed", Finished("x y", True, None, True)),
        ("❌ Argocd: Tool 'x' failed: X is off. ", Finished("x", False, "X is off", True)),
        ("❌ jira failed - it is away", Finished("jira", False, "it is away", False)),
        ("✅ Deployment completed", Finished("Deployment", True, None, False)),
        ("🔧 The fix is in.", None),
        ("completed", None),
    ],
)
def test_progress_in_prose(line: str, expected: Started | Finished | None) -> None:
    assert read_line(line) == expected


# Values


def through(value: Any) -> Any:
    message = Value()
    set_value(message, value)
    return get_value(message)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        ("a", "a"),
        (2**53, 2**53),
        (-(2**53), -(2**53)),
        (2**53 + 1, str(2**53 + 1)),
        (2.5, 2.5),
        (2.0, 2),
        (float("inf"), "inf"),
        ({}, {}),
        ({1: {"a": [None, {}]}}, {"1": {"a": [None, {}]}}),
        ([], []),
        (("a", 1), ["a", 1]),
        ({"a"}, ["a"]),
        (frozenset({2}), [2]),
        (Value, str(Value)),
    ],
)
def test_values_in_and_out_of_protobuf(value: Any, expected: Any) -> None:
    assert repr(through(value)) == repr(expected)


def test_numbers_that_a_double_holds_exactly_are_integers() -> None:
    numbers = [get_number(number) for number in (2.0, -2.0, 2.0**53, 2.0**54, 2.5)]
    assert repr(numbers) == repr([2, -2, 2**53, 2.0**54, 2.5])


@dataclass(frozen=True)
class Words:
    one: str
    several: tuple[Any, ...] = ()


def test_text_is_made_valid_wherever_it_is() -> None:
    half, mended = "a\ud83d", "a\ufffd"
    value = Words(half, (half, [half], {half: half}, 5, Words))
    assert scrub(value) == Words(mended, (mended, [mended], {mended: mended}, 5, Words))
    assert scrub("🔧 \ud83d\udd27") == "🔧 🔧"


# Parts


def data_part(value: Any) -> Part:
    part = Part()
    set_value(part.data, value)
    return part


def test_parts_as_text_and_data() -> None:
    parts = [
        Part(text="a"),
        data_part([1]),
        data_part({"ö": 1}),
        data_part({"second": 2}),
        Part(url="https://example.org/x"),
        Part(raw=b"x", filename="a.png", media_type="image/png"),
        Part(raw=b"x", media_type="image/png"),
        Part(raw=b"x"),
        Part(),
        Part(text="b"),
    ]
    assert text_of(parts) == "ab"
    assert data_of(parts) == {"ö": 1}
    assert data_of(parts[:2]) == {}
    assert content_of(iter(parts)) == (
        'a\n[1]\n{"ö": 1}\n{"second": 2}\nhttps://example.org/x\n[file: a.png]\n[file: image/png]\n[file: unnamed]\nb'
    )
    assert content_of([Part(text="a"), Part(text="b")]) == "ab"


# Forms


def test_what_a_form_lacks_is_empty() -> None:
    assert read_form({}) == Form("", "")
    assert read_form({}, form_id="a1") == Form("a1", "")
    odd = {"form_id": 5, "input_title": None, "input_fields": {"a": 1}, "agent": 7, "action_requests": "x"}
    assert read_form(odd, form_id="a1") == Form("a1", "", agent="")
    listed = {"form_id": "f1", "input_fields": [{}, 7], "action_requests": [{"tool": "x"}, 7], "agent": "jira"}
    assert read_form(listed, form_id="a1") == Form(
        "f1", "", (FormField(""),), agent="jira", action_requests=({"tool": "x"},)
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"field_values": ["a", 2]}, FormField("", "select", field_values=("a", "2"))),
        ({"field_values": []}, FormField("", field_values=())),
        ({"field_values": ["a"], "field_type": "multiselect"}, FormField("", "multiselect", field_values=("a",))),
        ({"field_type": "hologram", "field_values": "a"}, FormField("")),
        ({"required": False}, FormField("", required=False)),
        ({"required": 0}, FormField("")),
        ({"field_error": "No.", "value": 1}, FormField("", value=1, error="No.")),
        ({"field_error": 5}, FormField("")),
        ({"validation": {"minimum": "-5", "maximum": "9" * 400}}, FormField("", rules=FieldRules(-5, int("9" * 400)))),
        (
            {"validation": {"minimum": "--5", "maximum": "9" * 401, "integer": True}},
            FormField("", rules=FieldRules(integer=True)),
        ),
        (
            {"validation": {"min_length": 2.0, "max_length": "7"}},
            FormField("", rules=FieldRules(min_length=2, max_length=7)),
        ),
        ({"validation": {"min_length": 0, "pattern": "x"}}, FormField("", rules=FieldRules(min_length=0, pattern="x"))),
    ],
)
def test_a_field_is_read_as_far_as_it_is_understood(data: dict[str, Any], expected: FormField) -> None:
    assert read_form({"input_fields": [data]}).fields == (expected,)


def test_which_data_is_a_form() -> None:
    assert is_form_data({"user_input": True})
    assert is_form_data({"input_fields": []})
    assert not is_form_data({"user_input": "yes", "input_fields": {}})
    assert not is_form_data([])


# Items of a stream

_TEXT = {"text": "x"}
_WORKING = {"state": "TASK_STATE_WORKING"}


@pytest.mark.parametrize(
    "item",
    [
        {},
        {"artifactUpdate": {"artifact": {}}},
        {"artifactUpdate": {"artifact": {"parts": [{}]}}},
        {"artifactUpdate": {"artifact": {"metadata": {}, "parts": [{"text": "x", "filename": "a.md"}]}}},
        {"artifactUpdate": {"artifact": {"parts": [_TEXT], "extensions": ["urn:x"]}}},
        {"artifactUpdate": {"artifact": {"parts": [_TEXT]}, "metadata": {"a": 1}}},
        {
            "artifactUpdate": {
                "taskId": "t",
                "contextId": "c",
                "append": True,
                "lastChunk": True,
                "artifact": {
                    "artifactId": "a",
                    "name": "n",
                    "description": "d",
                    "parts": [_TEXT, {"data": {"a": [1]}}],
                    "metadata": {"a": {"b": 1}},
                },
            }
        },
        {"statusUpdate": {"status": _WORKING}},
        {"statusUpdate": {"taskId": "t", "contextId": "c", "status": _WORKING, "metadata": {"a": 1}}},
        {"statusUpdate": {"status": _WORKING, "metadata": {}}},
        {"statusUpdate": {"status": {}}},
        {"statusUpdate": {"status": {**_WORKING, "message": {"messageId": "m", "parts": [_TEXT]}}}},
        {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}},
        {"task": {"status": {"state": "TASK_STATE_SUBMITTED"}}},
        {"task": {"id": "t", "status": {"state": "TASK_STATE_SUBMITTED"}, "metadata": {"a": 1}}},
        {"task": {"id": "t", "contextId": "c", "status": _WORKING}},
        {"message": {"messageId": "m", "parts": [_TEXT]}},
    ],
    ids=json.dumps,
)
def test_an_item_is_read_as_the_sdk_reads_it(item: dict[str, Any]) -> None:
    assert read_item(item) == parse_lenient(item, StreamResponse())


def test_items_of_ours_are_read_without_the_parser_of_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_json, "parse_lenient", None)
    status = {"state": "TASK_STATE_WORKING", "timestamp": "2023-11-14T22:13:20Z"}
    for item in (
        {"artifactUpdate": {"artifact": {"parts": [_TEXT, {"data": 1}, {}]}, "lastChunk": True}},
        {"statusUpdate": {"status": status, "metadata": {"a": 1}}},
        {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}, "history": []}},
    ):
        assert read_item(item).WhichOneof("payload")
