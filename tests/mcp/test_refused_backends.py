"""The servers of the shipped manifests against a backend that refuses: each of their answers is a failed call."""

from __future__ import annotations

import pytest

from tests.mcp.conftest import not_here
from tests.services.shipped_servers import REFUSALS, shipped_servers

pytestmark = [pytest.mark.process, pytest.mark.slow]


def test_what_a_refusing_backend_answers_is_a_failed_call(tmp_path_factory: pytest.TempPathFactory) -> None:
    shipped = shipped_servers(tmp_path_factory)
    assert shipped.accepted == {status: [] for status in REFUSALS}
    assert shipped.empty_list is None
    # PagerDuty's needs a Python of its own, which not every machine has.
    missing = [f"{agent}: {problem}" for agent, problem in shipped.problems.items() if agent != "pagerduty"]
    if missing:
        not_here("; ".join(missing))
