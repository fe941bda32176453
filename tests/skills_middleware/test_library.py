"""The built-in skills: valid, short, written for agents that exist, and safe to follow."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from deepagents.backends.filesystem import FilesystemBackend
from deepagents.middleware.skills import SkillsMiddleware
from langgraph.runtime import Runtime

from ai_platform_engineering.manifest import builtin_directory, load_manifests
from ai_platform_engineering.offline_model.english.sentences import requested_changes
from ai_platform_engineering.offline_model.skills.steps import procedure
from ai_platform_engineering.skills_middleware.checks import CheckedSkill, checked_skill
from ai_platform_engineering.skills_middleware.sources.directory import library_directory
from ai_platform_engineering.utils.a2a_common.codec.labels import display

MAX_DESCRIPTION = 200
"""Longer descriptions are cut in the prompt."""
MAX_LIST = 3500
TAGS = {display(name) for name in load_manifests([builtin_directory()])} | {"Knowledge base"}
REFERENCES = {"sync-failure-causes"}
"""Skills that explain, and so have no steps."""
REQUIRED = {
    "access-request",
    "certificate-expiry",
    "cost-review",
    "deployment-rollback",
    "failed-sync-diagnosis",
    "incident-triage",
    "oncall-handover",
    "post-incident-review",
    "release-notes",
    "service-onboarding",
}


def _read(folder: Path) -> CheckedSkill:
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return checked_skill(files, folder=folder.name)


SKILLS = {folder.name: _read(folder) for folder in sorted(library_directory().iterdir()) if folder.is_dir()}


def test_the_list_of_all_built_in_skills_is_short() -> None:
    assert set(SKILLS) >= REQUIRED
    assert len(SKILLS) >= 12
    lines = [f"- {name}: {skill.document.description}" for name, skill in SKILLS.items()]
    assert len("\n".join(lines).encode()) <= MAX_LIST


@pytest.mark.parametrize("name", SKILLS)
def test_a_built_in_skill_can_be_followed(name: str) -> None:
    skill = SKILLS[name]
    assert skill.findings == ()
    assert skill.document.warnings == ()
    assert len(skill.document.description) <= MAX_DESCRIPTION
    assert "$ARGUMENTS" in skill.document.instructions
    steps = procedure(skill.document.instructions).steps
    headings = re.findall(r"^## (.+)$", skill.document.instructions, re.M)
    if name not in REFERENCES:
        assert len(steps) >= 4
        assert headings[0] == "Steps"
        assert "Answer" in headings
    assert {step.tag for step in steps} <= TAGS
    # A step that changes something is never done unasked, and the skill says who decides.
    changes = [step for step in steps if requested_changes(step.text)]
    assert [step.text for step in changes if step.condition is None] == []
    assert not changes or "Safety" in headings


def test_what_skills_refer_to_exists() -> None:
    for name, skill in SKILLS.items():
        mentioned = set(re.findall(r"`([\w.-]+\.md)`", skill.document.instructions))
        assert mentioned == set(skill.files), name
        others = set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", skill.document.instructions))
        assert others <= set(SKILLS), name


def test_deepagents_takes_every_built_in_skill(caplog: pytest.LogCaptureFixture) -> None:
    middleware = SkillsMiddleware(
        backend=FilesystemBackend(root_dir=library_directory(), virtual_mode=True), sources=["/"]
    )
    with caplog.at_level(logging.WARNING):
        loaded = middleware.before_agent({"messages": []}, Runtime(), {})
    assert loaded is not None
    assert {skill["name"]: skill["description"] for skill in loaded["skills_metadata"]} == {
        name: skill.document.description for name, skill in SKILLS.items()
    }
    assert caplog.messages == []
