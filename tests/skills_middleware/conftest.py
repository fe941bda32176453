from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def wait_for_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the check of a healthy store may take longer than a turn would wait for it."""
    monkeypatch.setattr("ai_platform_engineering.skills_middleware.catalog._CHECK_TIMEOUT_SECONDS", 60)
