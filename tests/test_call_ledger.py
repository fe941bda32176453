from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ai_platform_engineering.call_ledger import CallLedger, LedgerCall
from ai_platform_engineering.events import AgentFinished, AgentStarted, ToolFinished, ToolStarted


def test_a_start_is_announced_once() -> None:
    ledger = CallLedger()
    call = LedgerCall("c1", "argocd")
    assert [*ledger.start(call)] == [AgentStarted("argocd", "c1")]
    assert [*ledger.start(call)] == []
    assert [*ledger.finish("c1", True)] == [AgentFinished("argocd", "c1", True)]
    assert [*ledger.start(call)] == [], "a resume repeats the starts of finished calls"
    assert [*ledger.finish("c1", True)] == []


def test_an_agent_that_ends_ends_what_it_has_open_first() -> None:
    ledger = CallLedger()
    started = [*ledger.start(LedgerCall("a", "jira")), *ledger.start(LedgerCall("t", "jira", "search", "a", "step-1"))]
    assert started == [AgentStarted("jira", "a"), ToolStarted("jira", "search", "t", "a", "step-1")]
    assert [*ledger.finish("a", False, "no connection")] == [
        ToolFinished("jira", "search", "t", False, "no connection", "a", "step-1"),
        AgentFinished("jira", "a", False, "no connection"),
    ]


def test_success_has_no_reason() -> None:
    ledger = CallLedger()
    [*ledger.start(LedgerCall("t", "jira", "search"))]
    [finished] = ledger.finish("t", True, "ignored")
    assert finished.reason is None


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["start", "finish"])), max_size=40))
def test_every_start_has_one_end_for_any_events(calls: list[tuple[str, str]]) -> None:
    ledger = CallLedger()
    events: list[object] = []
    for call_id, what in calls:
        parent = "a" if call_id != "a" and ledger.get("a") else None
        if what == "start":
            events += ledger.start(LedgerCall(call_id, "x", None if call_id == "a" else "tool", parent))
        else:
            events += ledger.finish(call_id, True)
    events += ledger.close("stopped")
    starts = [event.call_id for event in events if isinstance(event, AgentStarted | ToolStarted)]
    ends = [event.call_id for event in events if isinstance(event, AgentFinished | ToolFinished)]
    assert sorted(starts) == sorted(ends)
    assert len(set(starts)) == len(starts)


def test_an_unknown_call_is_an_error_to_look_up() -> None:
    with pytest.raises(KeyError):
        CallLedger()["nothing"]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (
            ToolStarted("jira", "read_skill", "t", "a", "step-1", "triage"),
            ToolFinished("jira", "read_skill", "t", True, None, "a", "step-1", "triage"),
        ),
        (AgentStarted("jira", "t", "a", "step-1"), AgentFinished("jira", "t", True, None, "a", "step-1")),
    ],
)
def test_a_call_that_was_announced_before_ends_with_everything_its_start_said(
    start: AgentStarted | ToolStarted, end: AgentFinished | ToolFinished
) -> None:
    ledger = CallLedger()
    ledger.record(start)
    assert ledger["t"].started() == start
    assert [*ledger.start(ledger["t"])] == []
    assert [*ledger.finish("t", True)] == [end]
    ledger.record(start)
    ledger.record(end)
    ledger.record(end)
    assert [*ledger.finish("t", True)] == []


def test_the_place_of_a_call_is_among_the_open_ones() -> None:
    ledger = CallLedger()
    for call_id in "abc":
        [*ledger.start(LedgerCall(call_id, "jira"))]
    [*ledger.finish("a", True)]
    assert [ledger.position(call_id) for call_id in "bcx"] == [0, 1, 2]


def test_what_is_open_below_a_successful_call_was_stopped() -> None:
    ledger = CallLedger()
    [*ledger.start(LedgerCall("a", "jira")), *ledger.start(LedgerCall("t", "jira", "search", "a"))]
    child, parent = ledger.finish("a", True)
    assert (child.ok, child.reason) == (False, "stopped")
    assert (parent.ok, parent.reason) == (True, None)


def test_calls_that_are_open_at_the_end_have_failed() -> None:
    ledger = CallLedger()
    [*ledger.start(LedgerCall("a", "jira")), *ledger.start(LedgerCall("t", "jira", "search", "a"))]
    assert [*ledger.close("canceled")] == [
        ToolFinished("jira", "search", "t", False, "canceled", "a"),
        AgentFinished("jira", "a", False, "canceled"),
    ]
