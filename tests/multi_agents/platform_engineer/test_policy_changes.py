"""A changed policy is in the audit record, once."""

from __future__ import annotations

from pathlib import Path

from ai_platform_engineering.audit.record import AuditFact
from ai_platform_engineering.multi_agents.platform_engineer.policy_changes import record_policy_change
from ai_platform_engineering.settings import load_settings


class Recorded:
    def __init__(self) -> None:
        self.facts: list[AuditFact] = []

    def record(self, fact: AuditFact) -> None:
        self.facts.append(fact)

    async def record_durably(self, fact: AuditFact) -> None:
        self.record(fact)


def test_every_change_is_recorded_and_a_start_without_one_is_not(tmp_path: Path) -> None:
    file, recorded = tmp_path / "policy.yaml", Recorded()
    data = {"DATA_DIR": str(tmp_path / "data")}
    counts = []
    for content in (None, "version: 1", "version: 1", "version: 1\n", None):
        if content is not None:
            file.write_text(content)
        settings = load_settings(data | ({"POLICY_FILE": str(file)} if content is not None else {}), None)
        record_policy_change(settings, recorded)
        counts.append(len(recorded.facts))
    assert counts == [0, 1, 1, 2, 3]
    assert [fact.kind for fact in recorded.facts] == ["policy_changed"] * 3
    assert len({fact.arguments for fact in recorded.facts}) == 3
    assert recorded.facts[0].target == str(file)
