from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Canceled,
    Event,
    FinalResult,
    Form,
    InputRequired,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.terminal.reducer import CUT_OFF, resume_view
from ai_platform_engineering.terminal.view import (
    CallFinished,
    Delegation,
    MessageText,
    PlanShown,
    RunEnded,
    TerminalNotice,
    ToolCall,
    View,
)
from tests import strategies
from tests.terminal.runs import BEGINNING, RUN, plan, said, view_of, views_of


def test_text_becomes_a_fact_block_by_block() -> None:
    events = [TextDelta(SUPERVISOR, "m", text) for text in ("One", ".\n", "\n", "Two")]
    view = view_of(events)
    assert view.transcript == (MessageText("m", "One."),)
    assert [partial.text for partial in view.partial_messages] == ["Two"]


def test_an_agent_and_its_tools_become_one_fact_when_it_ends() -> None:
    (call,) = [entry.call for entry in view_of(RUN).transcript if isinstance(entry, CallFinished) and not entry.inner]
    assert call == Delegation(
        "jira",
        "a1",
        "ok",
        "",
        (
            ToolCall("jira", "search_issues", "t1", "ok"),
            ToolCall("jira", "get_issue", "t2", "failed", "no such issue"),
        ),
    )


def test_each_step_is_shown_once_before_the_answer_or_when_the_answer_has_done_it() -> None:
    live = [view.plan_is_live for view in views_of(RUN)]
    first_plan, last_plan = RUN.index(plan("pending", "pending")), RUN.index(plan("completed", "completed"))
    assert live == [first_plan <= place < last_plan for place in range(len(RUN))]
    before, after = [entry for entry in view_of(RUN).transcript if isinstance(entry, PlanShown)]
    assert [(step.id, step.status) for step in before.steps] == [("s1", "completed")]
    assert [(step.id, step.status) for step in after.steps] == [("s2", "completed")]
    assert (before.title, after.title) == ("Compare issues", None)


def test_a_plan_that_was_not_carried_out_is_shown_as_it_was_left() -> None:
    (shown,) = [entry for entry in view_of([*BEGINNING, Canceled()]).transcript if isinstance(entry, PlanShown)]
    assert [step.status for step in shown.steps] == ["in_progress", "pending"]


def test_a_plan_that_goes_on_after_a_text_shows_only_what_changed() -> None:
    more: list[Event] = [
        *RUN[: RUN.index(plan("completed", "pending")) + 1],
        *said("m2", "Now I compare."),
        AgentStarted("github", "a2", None, "s2"),
        plan("completed", "in_progress"),
        AgentFinished("github", "a2", True, None, None, "s2"),
        plan("completed", "completed"),
    ]
    shown = [entry.steps for entry in view_of(more).transcript if isinstance(entry, PlanShown)]
    assert [[step.id for step in steps] for steps in shown] == [["s1"], ["s2"]]


def test_what_an_agent_writes_for_the_supervisor_is_not_shown() -> None:
    assert view_of([TextDelta("jira", "m", "Found it.\n\nMore.", parent_call_id="a1")]).transcript == ()


def test_text_that_was_cut_off_is_replaced_and_a_notice_says_so() -> None:
    view = view_of(
        [TextDelta(SUPERVISOR, "m1", "The answer is fo"), TextDelta(SUPERVISOR, "m2", "The", supersedes="m1")]
    )
    assert view.transcript == (TerminalNotice(CUT_OFF),)
    assert [partial.text for partial in view.partial_messages] == ["The"]


def test_an_answer_that_was_not_streamed_is_said_at_the_end() -> None:
    assert view_of([FinalResult("Done.", "m")]).transcript == (
        MessageText("m", "Done."),
        RunEnded(FinalResult("Done.", "m")),
    )


def test_a_tool_that_outlives_its_agent_goes_on() -> None:
    view = view_of([AgentStarted("jira", "a"), ToolStarted("jira", "get", "t", "a"), AgentFinished("jira", "a", True)])
    assert view.calls == (ToolCall("jira", "get", "t"),)


def test_names_and_reasons_cannot_act_on_the_terminal() -> None:
    view = view_of(
        [
            ToolStarted("ji\x1bra", "g\x1b[2Jet", "t"),
            ToolFinished("ji\x1bra", "g\x1b[2Jet", "t", False, "a\x07\nb"),
            TerminalNotice("x\x1by"),
        ]
    )
    assert "\x1b" not in repr(view).replace("\\x1b", "\x1b")
    assert "\\x07" not in repr(view)


def test_a_run_that_got_its_answer_goes_on_with_the_same_plan_and_calls() -> None:
    ended: list[Event] = [
        ToolFinished("jira", "search_issues", "t1", True, None, "a1", "s1"),
        ToolStarted("jira", "ask", "t2", "a1", "s1"),
        InputRequired((Form("f", "Which?"),)),
    ]
    view = resume_view(view_of([*BEGINNING, *ended]))
    assert view.calls == (Delegation("jira", "a1", tools=(ToolCall("jira", "ask", "t2"),)),), (
        "ended calls were shown before"
    )
    assert view.plan == plan("in_progress", "pending")
    assert (view.plan_is_live, view.ending) == (True, None)


def test_a_run_that_did_not_ask_is_followed_by_a_new_one() -> None:
    assert resume_view(view_of(RUN)) == View()
    assert resume_view(view_of([Canceled()])) == View()


@settings(max_examples=60, deadline=None)
@given(strategies.runs())
def test_facts_are_only_ever_added(run: list[Event]) -> None:
    for before, after in pairwise(views_of(run)):
        assert after.transcript[: len(before.transcript)] == before.transcript


@settings(max_examples=60, deadline=None)
@given(strategies.runs())
def test_every_call_is_shown_once_and_nothing_is_left_open(run: list[Event]) -> None:
    view = view_of(run)
    started = sorted(event.call_id for event in run if isinstance(event, AgentStarted | ToolStarted))
    ended = [entry.call for entry in view.transcript if isinstance(entry, CallFinished)]
    end = view.transcript[-1]
    assert isinstance(end, RunEnded)
    waiting = [one for call in end.waiting for one in (call, *(call.tools if isinstance(call, Delegation) else ()))]
    assert sorted(call.call_id for call in [*ended, *(one for one in waiting if one.state == "running")]) == started
    assert (view.calls, view.partial_messages, view.ending) == ((), (), run[-1])
