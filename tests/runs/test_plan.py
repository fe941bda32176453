from __future__ import annotations

from ai_platform_engineering.events import PlanUpdated
from ai_platform_engineering.runs.plan import Plan

TODOS = [
    {"content": "Search tickets", "agent": "Jira", "status": "pending"},
    {"content": "Search issues", "agent": "github", "status": "pending"},
    {"content": "Compare", "agent": None, "status": "pending"},
]


def statuses(plan: Plan) -> list[str]:
    return [step.status for step in plan.steps]


def test_ids_stay_while_the_plan_changes_around_them() -> None:
    plan = Plan().rewritten("Compare", TODOS)
    assert [step.id for step in plan.steps] == ["step-1", "step-2", "step-3"]
    again = plan.rewritten("Compare", [TODOS[2], {"content": "Look at incidents", "agent": "pagerduty"}, TODOS[0]])
    assert [(step.id, step.order) for step in again.steps] == [("step-3", 0), ("step-4", 1), ("step-1", 2)]


def test_two_steps_with_the_same_words_are_two_steps() -> None:
    plan = Plan().rewritten("", [TODOS[0], TODOS[0]])
    assert [step.id for step in plan.steps] == ["step-1", "step-2"]
    again = plan.rewritten("", [TODOS[0]] * 3)
    assert [step.id for step in again.steps] == ["step-1", "step-3", "step-4"], "the first keeps its id"


def test_a_title_stays_until_the_model_gives_another_and_is_shown() -> None:
    plan = Plan().rewritten("Compare", TODOS)
    assert plan.event() == PlanUpdated(plan.steps, "Compare")
    assert plan.rewritten("", TODOS).title == "Compare"
    assert plan.rewritten("Look", TODOS).title == "Look"


def test_a_plan_goes_on_from_how_it_was_last_shown() -> None:
    shown = Plan().rewritten("Compare", TODOS).event()
    plan = Plan().own_tool_succeeded().restored(shown)
    assert (plan.event(), plan.used_tools) == (shown, True)


def test_a_delegation_takes_no_step_of_another_agent_and_may_take_a_step_under_way() -> None:
    plan = Plan().rewritten("", [TODOS[1], {**TODOS[0], "status": "in_progress"}])
    assert plan.step_for("pagerduty") is None
    step = plan.step_for("jira")
    assert step is not None
    assert step.id == "step-2"
    assert plan.delegation_started("step-2").step_for("jira") is not None, "its only step may be worked on again"


def test_a_delegation_without_a_step_changes_no_step() -> None:
    plan = Plan().rewritten("", TODOS)
    assert statuses(plan.delegation_started(None).delegation_finished(None, "jira", False)) == statuses(plan)


def test_the_answer_completes_claimed_steps_only_of_agents_that_served() -> None:
    todos = [TODOS[0], {"content": "Read the first", "agent": "jira"}, {"content": "Sum up", "status": "in_progress"}]
    claimed = [todos[0], {**todos[1], "status": "completed"}, todos[2]]
    failed = Plan().rewritten("", todos).delegation_started("step-1").delegation_finished("step-1", "jira", False)
    assert statuses(failed.rewritten("", claimed).answered()) == ["failed", "pending", "completed"]
    done = Plan().rewritten("", todos).delegation_started("step-1").delegation_finished("step-1", "jira", True)
    assert statuses(done.rewritten("", todos).answered()) == ["completed", "pending", "completed"], "not claimed"
    under_way = [todos[0], {**todos[1], "status": "in_progress"}]
    assert statuses(done.rewritten("", under_way).rewritten("", claimed[:2]).answered()) == ["completed", "completed"]


def test_the_model_decides_on_a_step_that_was_never_delegated() -> None:
    plan = Plan().rewritten("", TODOS)
    assert statuses(plan.rewritten("", [{**TODOS[0], "status": "failed"}])) == ["failed"]


def test_a_step_follows_its_delegation() -> None:
    plan = Plan().rewritten("", TODOS)
    step = plan.step_for("jira")
    assert step is not None
    plan = plan.delegation_started(step.id)
    assert statuses(plan) == ["in_progress", "pending", "pending"]
    plan = plan.delegation_finished(step.id, "jira", True)
    assert statuses(plan) == ["completed", "pending", "pending"]
    assert statuses(plan.answered()) == ["completed", "pending", "completed"], "github never ran"


def test_a_failed_step_is_failed_whatever_the_model_says() -> None:
    plan = Plan().rewritten("", TODOS).delegation_started("step-1").delegation_finished("step-1", "jira", False)
    claimed = [{**todo, "status": "completed"} for todo in TODOS]
    assert statuses(plan.rewritten("", claimed)) == ["failed", "pending", "pending"]


def test_an_agents_step_is_not_done_because_the_model_says_so() -> None:
    claimed = [{**TODOS[0], "status": "completed"}]
    assert statuses(Plan().rewritten("", claimed)) == ["pending"]


def test_one_delegation_may_serve_two_steps_of_its_agent() -> None:
    todos = [TODOS[0], {"content": "Read the first", "agent": "jira"}]
    plan = Plan().rewritten("", todos).delegation_started("step-1").delegation_finished("step-1", "jira", True)
    claimed = [{**todo, "status": "completed"} for todo in todos]
    plan = plan.rewritten("", claimed)
    assert statuses(plan) == ["completed", "pending"], "a run that ends without an answer leaves the second unfinished"
    assert statuses(plan.answered()) == ["completed", "completed"]


def test_a_step_of_its_own_is_done_by_its_tools_or_by_the_answer() -> None:
    claimed = [{**TODOS[2], "status": "completed"}]
    assert statuses(Plan().rewritten("", claimed)) == ["pending"]
    assert statuses(Plan().own_tool_succeeded().rewritten("", claimed)) == ["completed"]


def test_the_model_may_give_a_done_step_up_but_not_a_failed_one_back() -> None:
    done = Plan().rewritten("", TODOS).delegation_started("step-1").delegation_finished("step-1", "jira", True)
    assert statuses(done.rewritten("", [{**TODOS[0], "status": "failed"}])) == ["failed"]


def test_parallel_delegations_of_one_agent_take_different_steps() -> None:
    plan = Plan().rewritten("", [{"content": "a", "agent": "jira"}, {"content": "b", "agent": "jira"}])
    first = plan.step_for("jira")
    assert first is not None
    second = plan.delegation_started(first.id).step_for("jira")
    assert second is not None
    assert second.id != first.id
