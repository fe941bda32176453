from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import Event, FieldRules, FinalResult, Form, FormField, InputRequired, TextDelta
from ai_platform_engineering.events_json import Asked, EventFormatError, Line, decode_line, encode_line
from tests import strategies


@settings(max_examples=60, deadline=None)
@given(strategies.runs())
def test_decoding_gives_back_what_was_encoded(run: list[Event]) -> None:
    assert [decode_line(encode_line(event)) for event in run] == [Line(event) for event in run]


@settings(max_examples=60, deadline=None)
@given(strategies.runs(), st.floats(0, 1e6))
def test_every_event_is_one_line_of_ascii_that_any_reader_of_json_understands(run: list[Event], at: float) -> None:
    for event in run:
        line = encode_line(event, at)
        assert line.isascii()
        assert line.isprintable()
        assert json.loads(line)["at"] == round(at, 3)


def test_a_line_says_what_it_is_and_leaves_out_what_is_as_always() -> None:
    assert json.loads(encode_line(TextDelta("jira", "m1", "Grüße"), at=1.23456)) == {
        "at": 1.235,
        "event": "text_delta",
        "agent": "jira",
        "message_id": "m1",
        "text": "Grüße",
    }


def test_a_form_keeps_its_rules_and_errors_and_leaves_out_what_is_not_set() -> None:
    rules = FieldRules(minimum=1, max_length=40)
    asked = InputRequired((Form("f1", "Scale", (FormField("n", "number", rules=rules, error="`n` is too low."),)),))
    field = json.loads(encode_line(asked))["forms"][0]["fields"][0]
    assert field == {
        "field_name": "n",
        "field_type": "number",
        "rules": {"minimum": 1, "max_length": 40},
        "error": "`n` is too low.",
    }
    assert decode_line(encode_line(asked)) == Line(asked)


def test_what_was_asked_is_a_line_too() -> None:
    asked = Asked("show argocd version", "context-1")
    assert decode_line(encode_line(asked, 0)) == Line(asked, 0.0)


def test_keys_that_are_not_known_are_passed_over() -> None:
    line = '{"event": "final_result", "text": "Done.", "answer_message_id": "m", "seq": 12, "trace_id": "x"}'
    assert decode_line(line) == Line(FinalResult("Done.", "m"))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "This is not JSON"),
        ("[1]", "This is not a JSON object"),
        ('{"event": "finished"}', "'finished', is none of plan_updated"),
        ('{"event": ["text_delta"]}', "is none of plan_updated"),
        ('{"event": "text_delta", "agent": "jira", "message_id": "m"}', "The text_delta event has a wrong `text`"),
        (
            '{"event": "plan_updated", "steps": [{"id": "1", "title": "x", "status": "done", "order": 0}]}',
            "The plan_updated event has a wrong `steps.0.status`",
        ),
        ('{"event": "canceled", "at": "soon"}', "'soon', is not a number of seconds"),
        ('{"event": "tool_finished", "agent": "a", "tool": "t", "call_id": "c", "ok": "yes"}', "a wrong `ok`"),
    ],
)
def test_a_wrong_line_is_named(line: str, sentence: str) -> None:
    with pytest.raises(EventFormatError, match=r".") as caught:
        decode_line(line)
    assert sentence in str(caught.value)
