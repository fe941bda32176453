"""An answer as data and as words, and how both are read."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.forms.answers import (
    Answer,
    Approved,
    Dismissed,
    Rejected,
    Submitted,
    answer_data,
    answer_text,
    read_answer,
)
from tests.strategies import json_values

_values = st.dictionaries(st.text(), json_values)
_answers: st.SearchStrategy[Answer] = st.one_of(
    st.builds(Submitted, _values),
    st.builds(Approved, st.none() | _values, st.booleans()),
    st.builds(Rejected, st.text()),
    st.builds(Dismissed, st.text()),
)


@given(_answers)
def test_the_data_of_an_answer_is_read_as_that_answer(answer: Answer) -> None:
    # NaN is unlike itself.
    assert repr(read_answer(answer_data(answer))) == repr(answer)


@pytest.mark.parametrize(
    ("answer", "data"),
    [
        (Submitted({"n": 1}), {"values": {"n": 1}}),
        (Approved(), {"decisions": [{"type": "approve"}]}),
        (Approved({"n": 1}, remember=True), {"decisions": [{"type": "edit", "args": {"n": 1}, "remember": True}]}),
        (Rejected("no"), {"decisions": [{"type": "reject", "message": "no"}]}),
        (Dismissed("no"), {"cancel": True, "message": "no"}),
    ],
)
def test_the_data_that_clients_send(answer: Answer, data: dict[str, Any]) -> None:
    assert answer_data(answer) == data


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ({"type": "reject", "reason": "no"}, Rejected("no")),
        ({"type": "reject", "message": "no", "reason": "other"}, Rejected("no")),
        ({"type": "reject", "message": 5}, Rejected()),
        ({"type": "approve", "remember": "yes"}, Approved()),
        ({"type": "edit", "args": {"n": 1}, "values": {"n": 2}}, Approved({"n": 1})),
        ({"type": "edit", "values": {"n": 2}, "edited_action": {"args": {"n": 3}}}, Approved({"n": 2})),
        (
            {"type": "edit", "edited_action": {"name": "sync", "args": {"n": 3}}, "remember": True},
            Approved({"n": 3}, True),
        ),
        ({"type": "edit", "edited_action": [{"n": 3}]}, None),
        ("approve", None),
    ],
)
def test_the_dialects_of_decisions(decision: Any, expected: Answer | None) -> None:
    assert read_answer({"decisions": [decision]}) == expected


def test_data_without_an_answer() -> None:
    for data in ({}, {"decisions": []}, {"decisions": {"type": "approve"}}, {"cancel": "yes"}, {"values": [1]}):
        assert read_answer(data) is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Submitted({"cluster": "prod"}), "prod"),
        (
            Submitted({"dry run": True, "force": False, "zones": ["a", 2], "n": 2.5}),
            "dry run: yes\nforce: no\nzones: a, 2\nn: 2.5",
        ),
        (Submitted({}), ""),
        (Approved(), "approve"),
        (Approved(remember=True), "approve always"),
        (
            Approved({"größe": 2, "when": date(2025, 1, 2)}),
            'approve with {"größe": 2, "when": "2025-01-02"}',
        ),
        (Rejected("in use"), "reject: in use"),
        (Rejected(), "reject"),
        (Dismissed("no time"), "cancel"),
    ],
)
def test_the_words_of_an_answer(answer: Answer, text: str) -> None:
    assert answer_text(answer) == text
