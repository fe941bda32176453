from __future__ import annotations

import json
from typing import Any

import pytest

from ai_platform_engineering.multi_agents.platform_engineer.deep_agent import PlanArguments
from ai_platform_engineering.multi_agents.platform_engineer.workflows import progress
from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Step, Workflow
from ai_platform_engineering.multi_agents.platform_engineer.workflows.progress import WorkflowState
from tests.multi_agents.platform_engineer.workflows.examples import BUILT, LAUNCH, VALUES

BUILD, TICKET, ANNOUNCE = LAUNCH.steps


def begun(**values: Any) -> WorkflowState:
    return progress.begin(LAUNCH, {**VALUES, **values})


def done(state: WorkflowState, step: Step, result: str) -> WorkflowState:
    return progress.succeeded(LAUNCH, progress.started(state, step), step, result)


def test_steps_come_in_order_and_use_what_earlier_ones_gave() -> None:
    state = begun()
    assert progress.next_step(LAUNCH, state) is BUILD
    assert progress.arguments(BUILD, state) == {"name": "demo", "replicas": 2}
    running = progress.started(state, BUILD)
    assert progress.running_step(LAUNCH, running) is BUILD
    assert progress.next_step(LAUNCH, running) is None
    state = done(state, BUILD, BUILT)
    assert state["outputs"] == {"build": {"url": "https://x.test/1", "count": 3}}
    assert progress.next_step(LAUNCH, state) is TICKET
    assert progress.description(TICKET, state) == "Create a ticket about https://x.test/1."
    state = done(state, TICKET, "I made **SHOP-12** for you, and SHOP-13.")
    assert progress.description(ANNOUNCE, state) == "Announce SHOP-12 (3)."
    state = done(state, ANNOUNCE, "ok")
    assert progress.next_step(LAUNCH, state) is None
    assert set(state["statuses"].values()) == {"completed"}


def test_a_tool_step_can_be_understood_as_words() -> None:
    words = progress.description(BUILD, begun())
    assert "build" in words
    assert '{"name": "demo", "replicas": 2}' in words


def test_the_state_is_json_and_carries_its_definition() -> None:
    state = done(begun(), BUILD, BUILT)
    again: WorkflowState = json.loads(json.dumps(state))
    assert again == state
    assert progress.workflow_of(again) == LAUNCH
    # Which comparison a condition makes depends on the keys in the file, so they must survive.
    condition = progress.workflow_of(again).steps[2].when
    assert condition is not None
    assert not condition.holds(None)


def test_values_that_are_no_inputs_do_not_get_in() -> None:
    assert begun(other=1)["inputs"] == VALUES


def test_a_condition_on_an_input_is_decided_at_once_and_one_on_a_skipped_step_with_it() -> None:
    state = begun(ticket=False)
    assert state["statuses"] == {"build": "pending", "ticket": "skipped", "announce": "skipped"}
    assert progress.next_step(LAUNCH, done(state, BUILD, BUILT)) is None


@pytest.mark.parametrize(
    ("step", "result", "reason"),
    [
        (BUILD, "no JSON", "build finished, but its result has no url"),
        (BUILD, '{"links": []}', "build finished, but its result has no url"),
        (BUILD, '{"links": {"0": {}}}', "build finished, but its result has no url"),
        (BUILD, '{"links": [{"url": "u"}], "count": null}', "build finished, but its result has no count"),
        (BUILD, '["links"]', "build finished, but its result has no url"),
        (TICKET, "I could not do it.", "teller finished, but its result has no key"),
    ],
)
def test_an_output_that_is_not_there_fails_the_step(step: Step, result: str, reason: str) -> None:
    state = done(begun(), step, result)
    assert state["statuses"][step.name] == "failed"
    assert state["reason"] == reason
    assert progress.next_step(LAUNCH, state) is None


def test_a_group_of_the_expression_is_what_counts() -> None:
    step = TICKET.model_copy(update={"outputs": {"key": r"made \*\*(\S+)\*\*"}})
    assert done(begun(), step, "I made **A-1**")["outputs"]["ticket"] == {"key": "A-1"}


def test_nothing_runs_after_a_failure() -> None:
    state = progress.failed(progress.started(begun(), BUILD), BUILD, "the builder is ill")
    assert progress.next_step(LAUNCH, state) is None
    assert list(progress.outcomes(LAUNCH, state)) == [
        "- Build it (builder): failed: the builder is ill",
        "- Open a ticket (teller): not done, because an earlier step failed",
        "- Announce it (teller): not done, because an earlier step failed",
    ]


def test_outcomes_tell_what_was_given_and_what_was_skipped() -> None:
    state = done(begun(ticket=False), BUILD, BUILT)
    assert list(progress.outcomes(LAUNCH, state)) == [
        "- Build it (builder): completed, url: https://x.test/1, count: 3",
        "- Open a ticket (teller): skipped, it was not asked for",
        "- Announce it (teller): skipped, it was not asked for",
    ]


def test_the_plan_is_one_the_plan_tool_takes() -> None:
    state = progress.started(begun(ticket=False), BUILD)
    plan = progress.plan_arguments(LAUNCH, state)
    PlanArguments.model_validate(plan)
    assert plan == {
        "title": "Launch Service",
        "steps": [
            {"content": "Build it", "agent": "builder", "status": "in_progress"},
        ],
    }


def test_the_longest_workflow_fits_the_plan_tool() -> None:
    steps = [
        {
            "name": f"s{n}",
            "title": "t" * 100,
            "agent": "a",
            "tool": "x",
            "when": {"value": "{{ inputs.i }}", "is_set": True},
        }
        for n in range(20)
    ]
    workflow = Workflow.model_validate(
        {"name": "w", "title": "t" * 100, "description": "d", "inputs": [{"name": "i"}], "steps": steps}
    )
    PlanArguments.model_validate(progress.plan_arguments(workflow, progress.begin(workflow, {"i": "x"})))
    assert not progress.needs_plan(progress.begin(workflow, {})), "a plan without steps"


def test_the_plan_is_written_again_only_when_a_step_was_skipped() -> None:
    state = begun()
    assert progress.needs_plan(state)
    state = progress.planned(state)
    assert not progress.needs_plan(state)
    assert not progress.needs_plan(done(state, BUILD, BUILT))
    skipping = Workflow.model_validate(
        {
            **LAUNCH.model_dump(mode="json", exclude_unset=True),
            "steps": [
                LAUNCH.steps[0].model_dump(mode="json", exclude_unset=True),
                {
                    "name": "more",
                    "title": "More",
                    "agent": "teller",
                    "instruction": "More.",
                    "when": {"value": "{{ steps.build.count }}", "equals": 4},
                },
            ],
        }
    )
    state = progress.planned(progress.begin(skipping, VALUES))
    state = progress.succeeded(skipping, progress.started(state, BUILD), BUILD, BUILT)
    assert progress.needs_plan(state)
