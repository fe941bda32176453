"""Cards: a line for every step of the plan with the agents that work on it, and what works outside of the plan."""

from __future__ import annotations

import itertools
from functools import reduce

import pytest

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Event,
    PlanStep,
    PlanUpdated,
    ToolFinished,
    ToolStarted,
)
from ai_platform_engineering.integrations.slack_bot.thread_view import cards
from ai_platform_engineering.integrations.slack_bot.thread_view.cards import Cards, step_title
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Card
from tests.integrations.slack_bot.scenes import begins, plan, reports, uses, works


def after(*events: Event) -> Cards:
    def next_one(known: Cards, event: Event) -> Cards:
        match event:
            case PlanUpdated():
                return cards.planned(known, event)
            case AgentStarted() | ToolStarted():
                return cards.started(known, event)
            case AgentFinished() | ToolFinished():
                return cards.finished(known, event)
            case _:
                raise AssertionError(event)

    return reduce(next_one, events, Cards())


def test_each_step_is_a_card_with_its_agent_in_order() -> None:
    steps = (PlanStep("b", "Tell", "pending", 2), PlanStep("a", "Look", "in_progress", 1, "argocd"))
    found = after(PlanUpdated(steps, "Two\nthings"))
    assert found.plan == "Two things"
    assert [(card.title, card.status) for card in found.all] == [("[Argocd] Look", "in_progress"), ("Tell", "pending")]


@pytest.mark.parametrize(
    ("title", "shown"),
    [("Look", "[Aws_Cost] Look"), ("[AWS_COST] Look", "[AWS_COST] Look"), ("x" * 300, "[Aws_Cost] " + "x" * 199 + "…")],
)
def test_an_agent_is_named_once_in_a_title(title: str, shown: str) -> None:
    assert step_title(PlanStep("a", title, "pending", 1, "aws_cost")) == shown


@pytest.mark.parametrize(
    ("status", "shown"),
    [("pending", "pending"), ("in_progress", "in_progress"), ("completed", "complete"), ("failed", "error")],
)
def test_a_step_is_shown_as_it_is(status: str, shown: str) -> None:
    assert after(plan(("Look", "", status))).all[0].status == shown  # type: ignore[arg-type]


def test_an_agent_works_on_the_card_of_its_step_whose_status_is_the_plans() -> None:
    planned = plan(("Look", "argocd", "in_progress"))
    found = after(
        planned, begins("argocd", "c1", "s0"), *uses("version", "argocd", within="c1"), reports("argocd", "c1")
    )
    assert found.all == (Card("step:s0", "[Argocd] Look", "in_progress", "Calling Agent Argocd... · version"),)


def test_what_was_noted_on_a_step_stays_when_the_plan_changes() -> None:
    found = after(
        plan(("Look", "argocd", "in_progress")), begins("argocd", "c1", "s0"), plan(("Look", "argocd", "completed"))
    )
    assert found.all == (Card("step:s0", "[Argocd] Look", "complete", "Calling Agent Argocd..."),)


def test_an_agent_outside_of_the_plan_has_a_card_of_its_own() -> None:
    assert after(begins("jira")).all == (Card("agent:jira", "Agent Jira", "in_progress", "Calling Agent Jira..."),)
    assert after(*works("jira")).all[0].status == "complete"


def test_a_call_of_an_unknown_step_gets_its_own_card() -> None:
    assert [card.id for card in after(plan(("Look", "", "pending")), begins("jira", "c1", "s7")).all] == [
        "step:s0",
        "agent:c1",
    ]


def test_a_tool_of_an_agent_is_shown_on_the_agents_card_and_does_not_end_it() -> None:
    found = after(begins("jira"), *uses("jql_search", "jira", within="jira"))
    assert found.all == (Card("agent:jira", "Agent Jira", "in_progress", "Calling Agent Jira... · jql_search"),)


def test_what_failed_says_why_in_a_line() -> None:
    tool = ToolStarted("jira", "jql_search", "t1", "jira")
    ended = ToolFinished("jira", "jql_search", "t1", False, "no such\nproject " + "x" * 200, "jira")
    details = after(begins("jira"), tool, ended).all[0].details
    assert details.startswith("Calling Agent Jira... · jql_search · jql_search failed: no such project xxx")
    assert len(details) < 200
    assert after(begins("jira"), reports("jira", ok=False)).all[0].status == "error"


def test_a_failure_without_a_reason_has_no_colon() -> None:
    found = after(begins("jira"), AgentFinished("jira", "jira", ok=False))
    assert found.all[0].details == "Calling Agent Jira... · Jira failed"


def test_all_looks_into_the_knowledge_base_are_one_card() -> None:
    found = after(*uses("search"), ToolStarted(SUPERVISOR, "fetch_document", "t2"))
    assert found.all == (Card("own:knowledge", "Knowledge base", "in_progress", "search · fetch_document"),)


def test_a_tool_of_that_name_that_an_agent_has_is_the_agents() -> None:
    assert [card.title for card in after(*uses("search", "github")).all] == ["[Github] Search"]


def test_a_skill_has_a_card_with_its_name_and_is_named_on_the_card_of_an_agent_that_reads_it() -> None:
    own = after(*uses("read_skill", skill="incident-triage"))
    assert own.all == (Card("own:supervisor:skill:incident-triage", "Skill incident-triage", "complete"),)
    read = ToolStarted("jira", "read_skill", "t1", "jira", skill="cost-review")
    failed = ToolFinished("jira", "read_skill", "t1", False, "it is gone", "jira", skill="cost-review")
    (card,) = after(begins("jira"), read, failed).all
    assert card.details == "Calling Agent Jira... · read_skill cost-review · read_skill cost-review failed: it is gone"


def test_a_card_is_complete_when_the_last_call_on_it_has_ended() -> None:
    first, second = (ToolStarted(SUPERVISOR, "search", call) for call in ("t1", "t2"))
    ended = ToolFinished(SUPERVISOR, "search", "t1", True)
    assert after(first, second, ended).all[0].status == "in_progress"
    assert after(first, second, ended, ToolFinished(SUPERVISOR, "search", "t2", True)).all[0].status == "complete"


def test_the_end_of_an_unknown_call_changes_nothing() -> None:
    assert after(reports("jira")) == Cards()


def test_a_step_that_is_no_longer_planned_says_so_once() -> None:
    both = plan(("Look", "", "completed"), ("Tell", "", "in_progress"))
    found = after(both, plan(("Look", "", "completed")), plan(("Look", "", "completed")))
    assert [(card.title, card.status) for card in found.all] == [
        ("Look", "complete"),
        ("No longer planned: Tell", "pending"),
    ]


def test_a_step_that_was_done_stays_done_when_it_is_dropped() -> None:
    found = after(plan(("Look", "", "completed")), PlanUpdated((PlanStep("new", "Tell", "pending", 0),)))
    assert [(card.title, card.status) for card in found.all] == [("Tell", "pending"), ("Look", "complete")]


def test_details_stop_growing_before_slack_refuses_them() -> None:
    events: list[Event] = [begins("jira")]
    for number in range(40):
        events.append(ToolStarted("jira", f"a_tool_with_a_long_name_{number}", f"t{number}", "jira"))
    details = [after(*events[: count + 1]).all[0].details for count in range(len(events))]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(details))
    assert details[-1].endswith(" …")
    assert len(details[-1]) <= 256


def test_nothing_is_under_way_when_the_run_has_ended() -> None:
    found = cards.ended(after(plan(("Look", "", "in_progress"), ("Tell", "", "completed")), begins("jira")))
    assert [card.status for card in found.all] == ["pending", "complete", "pending"]
