from __future__ import annotations

import pytest

from ai_platform_engineering.utils.silence import NOTHING_TO_SAY, is_silence


@pytest.mark.parametrize(
    "text", [NOTHING_TO_SAY, f"\n`{NOTHING_TO_SAY}`\n", f"**{NOTHING_TO_SAY}.**", "[Nothing to say]"]
)
def test_the_marker_is_silence_however_it_is_set(text: str) -> None:
    assert is_silence(text)


@pytest.mark.parametrize(
    "text", ["", "nothing to say", f"Argo CD is fine. {NOTHING_TO_SAY}", f"{NOTHING_TO_SAY}\nBut:"]
)
def test_whatever_else_is_said_is_not(text: str) -> None:
    assert not is_silence(text)
