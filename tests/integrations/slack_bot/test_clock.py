from __future__ import annotations

import time

import pytest

from ai_platform_engineering.integrations.slack_bot.clock import SystemClock


def test_a_clock_that_is_set_back_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time()
    clock = SystemClock()
    before = clock.now()
    monkeypatch.setattr(time, "time", lambda: real - 3_600)
    assert before == pytest.approx(real, abs=5)
    assert clock.now() >= before
