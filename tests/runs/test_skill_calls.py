from __future__ import annotations

from typing import Any

import pytest

from ai_platform_engineering.runs.skill_calls import MAX_SHOWN_NAME, skill_of


@pytest.mark.parametrize(
    ("tool", "arguments", "skill"),
    [
        ("read_skill", {"name": "incident-triage"}, "incident-triage"),
        ("read_skill", {"name": " /Incident_Triage "}, "incident-triage"),
        ("read_skill", {"name": "x" * 100}, "x" * MAX_SHOWN_NAME),
        ("read_skill", {"name": "/"}, None),
        ("read_skill", {"name": 3}, None),
        ("read_skill", {}, None),
        ("search_skills", {"name": "incident-triage"}, None),
    ],
)
def test_the_skill_that_a_call_reads(tool: str, arguments: dict[str, Any], skill: str | None) -> None:
    assert skill_of(tool, arguments) == skill
