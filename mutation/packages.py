"""The packages that are mutated, each with the tests that guard it; those that start a process are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Package:
    """`sources` are glob patterns of files below `ai_platform_engineering`, `tests` are paths for pytest."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


_RUN_TESTS: Final = (
    "tests/runs",
    "tests/test_call_ledger.py",
    "tests/multi_agents/platform_engineer/test_binding_streaming_events.py",
    "tests/multi_agents/platform_engineer/test_final_result_content.py",
)
_FORM_TESTS: Final = (
    "tests/forms",
    "tests/approvals/test_form.py",
    "tests/integrations/slack_bot/test_form_reading.py",
)

PACKAGES: Final[Mapping[str, Package]] = {
    "runs": Package(("runs/*", "call_ledger.py"), _RUN_TESTS),
    "graphs": Package(
        ("graphs/*",),
        (
            *_RUN_TESTS,
            "tests/graphs",
            "tests/approvals/test_approval_gate.py",
            "tests/approvals/test_forms_of_others.py",
            "tests/approvals/test_policy.py",
            "tests/skills_middleware/test_agent_skills.py",
            "tests/multi_agents/platform_engineer/workflows/test_driver.py",
        ),
    ),
    "codec": Package(
        ("utils/a2a_common/codec/*", "utils/a2a_common/wire.py"),
        (
            "tests/utils/a2a_common/test_event_json.py",
            "tests/utils/a2a_common/test_foreign.py",
            "tests/utils/a2a_common/test_request_json.py",
            "tests/utils/a2a_common/test_wire.py",
            "tests/utils/a2a_common/test_wire_round_trip.py",
            "tests/utils/a2a_common/test_wire_updates.py",
            "tests/utils/a2a_common/test_wire_values.py",
        ),
    ),
    "forms": Package(("forms/*",), _FORM_TESTS),
    "slack": Package(
        ("integrations/slack_bot/thread_view/*",),
        (
            "tests/integrations/slack_bot/test_planner.py",
            "tests/integrations/slack_bot/test_reducer_forms.py",
            "tests/integrations/slack_bot/test_reducer_messages.py",
            "tests/integrations/slack_bot/test_reducer_properties.py",
            "tests/integrations/slack_bot/test_reducer_content.py",
            "tests/integrations/slack_bot/test_slack_narrative_streaming.py",
        ),
    ),
}
