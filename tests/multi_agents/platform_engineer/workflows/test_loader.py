from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ai_platform_engineering.multi_agents.placement import AgentEntry
from ai_platform_engineering.multi_agents.platform_engineer.workflows import WorkflowError
from ai_platform_engineering.multi_agents.platform_engineer.workflows.loader import (
    known_workflows,
    ready_workflows,
    workflow_lines,
    workflow_offers,
)
from ai_platform_engineering.settings import Settings, load_settings
from tests.multi_agents.platform_engineer.workflows.examples import LAUNCH


def settings_of(directory: Path | None = None) -> Settings:
    return load_settings({} if directory is None else {"WORKFLOWS_DIR": str(directory)}, env_file=None)


def write(directory: Path, file: str, name: str, title: str = "T") -> None:
    step = {"name": "s", "title": "t", "agent": "a", "tool": "x"}
    content = {"name": name, "title": title, "description": "d", "steps": [step]}
    (directory / file).write_text(yaml.safe_dump(content), encoding="utf-8")


def test_own_workflows_stand_beside_ours_and_replace_them_by_name(tmp_path: Path) -> None:
    ours = known_workflows(settings_of())
    assert "create_github_repo" in ours
    write(tmp_path, "a.yaml", "mine")
    write(tmp_path, "b.yaml", "create_github_repo", "Another")
    both = known_workflows(settings_of(tmp_path))
    assert set(both) == {*ours, "mine"}
    assert both["create_github_repo"].title == "Another"
    assert list(both) == sorted(both)


def test_one_directory_cannot_hold_a_name_twice(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", "mine")
    write(tmp_path, "b.yaml", "mine")
    with pytest.raises(WorkflowError, match=r"b\.yaml: name: 'mine' is also the name in .*a\.yaml"):
        known_workflows(settings_of(tmp_path))


def test_a_workflow_is_offered_when_its_agents_are_enabled_and_else_says_why() -> None:
    workflows = {LAUNCH.name: LAUNCH}
    builder = AgentEntry("builder", True, "in-process", "it is configured")
    teller = AgentEntry("teller", True, "remote", "it has an address")
    off = AgentEntry("teller", False, "in-process", "ENABLE_TELLER=false")
    assert ready_workflows(workflow_offers(workflows, [builder, teller])) == workflows
    assert ready_workflows(workflow_offers(workflows, [builder, off])) == {}
    assert [offer.reason for offer in workflow_offers(workflows, [builder, off])] == [
        "the agent teller is off (ENABLE_TELLER=false)"
    ]
    assert [offer.reason for offer in workflow_offers(workflows, [teller])] == ["there is no agent builder"]


def test_lines_for_the_model() -> None:
    assert workflow_lines([LAUNCH]) == [
        "- launch_service: Launch Service. Launches a service. "
        "(keywords: launch; inputs: service, replicas, ticket, note)"
    ]
