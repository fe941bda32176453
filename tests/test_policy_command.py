"""`platform-engineer policy`: checks the file and explains decisions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ai_platform_engineering.cli.entry import main

POLICY = """
version: 1
rules:
  - name: production is synced with four eyes
    who: [group:developers]
    tools: ["argocd.sync_application(app=prod-*)"]
    action: approve
    approvers: [group:sre]
    four_eyes: true
  - {who: ["*"], agents: [pagerduty], action: deny}
"""


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (
            ["test", "--as", "bob", "--group", "developers", "argocd.sync_application(app=prod-eu)"],
            [
                "bob (developers), argocd.sync_application(app=prod-eu):",
                "approve. The rule 'production is synced with four eyes' decides.",
                "Only members of sre may approve this, except the person who asked for it.",
            ],
        ),
        (
            ["test", "argocd.sync_application(app=prod-eu)"],
            [
                "anonymous (no groups), argocd.sync_application(app=prod-eu):",
                "not decided. No rule is about it; the approval level of the tool decides.",
            ],
        ),
        (
            ["test", "agent:pagerduty"],
            ["anonymous (no groups), agent:pagerduty:", "deny. The rule 'rule 2' decides."],
        ),
        (["check"], ["The policy is valid: 2 rules, default allow."]),
    ],
)
def test_a_decision_is_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], lines: list[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    assert main(["policy", *arguments, "--file", str(file)]) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_a_wrong_target_or_file_is_refused_with_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1")
    assert main(["policy", "test", "everything", "--file", str(file)]) == 2
    assert "'everything' must be agent.tool or" in capsys.readouterr().err
    assert main(["policy", "check"]) == 2
    assert "set POLICY_FILE" in capsys.readouterr().err
