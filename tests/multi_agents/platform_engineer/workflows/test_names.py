from __future__ import annotations

import pytest

from ai_platform_engineering.multi_agents.platform_engineer.workflows.definition import Workflow
from ai_platform_engineering.multi_agents.platform_engineer.workflows.loader import named_workflow
from tests.multi_agents.platform_engineer.workflows.examples import LAUNCH

RUN_REPORT = Workflow.model_validate(
    {
        "name": "run_report",
        "title": "Run Report Workflow",
        "description": "d",
        "steps": [{"name": "s", "title": "t", "agent": "a", "tool": "x"}],
    }
)


@pytest.mark.parametrize(
    "text",
    [
        "Launch Service",
        "launch_service",
        "LAUNCH-SERVICE",
        "  launch   service. ",
        "run launch service",
        "start the launch service workflow",
        "Start workflow launch_service",
        "workflow: launch-service".replace(":", ""),
        '"Launch Service"',
    ],
)
def test_named(text: str) -> None:
    assert named_workflow(text, [RUN_REPORT, LAUNCH]) is LAUNCH


@pytest.mark.parametrize(
    "text",
    ["", "workflow", "run", "start the workflow", "launch", "launch service demo", "what does launch service do?"],
)
def test_not_named(text: str) -> None:
    assert named_workflow(text, [RUN_REPORT, LAUNCH]) is None


@pytest.mark.parametrize("text", ["Run Report Workflow", "run report workflow", "run_report", "run run_report"])
def test_a_name_may_hold_the_words_that_stand_around_names(text: str) -> None:
    assert named_workflow(text, [RUN_REPORT, LAUNCH]) is RUN_REPORT
