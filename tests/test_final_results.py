from __future__ import annotations

import pytest

from ai_platform_engineering.final_results import NOTHING_TO_SAY, is_silence


@pytest.mark.parametrize(
    "text", [NOTHING_TO_SAY, f"\n`{NOTHING_TO_SAY}`\n", f"**{NOTHING_TO_SAY}.**", "[Nothing to say]"]
)
def test_the_marker_is_silence_with_any_decoration(text: str) -> None:
    assert is_silence(text)


@pytest.mark.parametrize(
    "text", ["", "nothing to say", f"Argo CD is fine. {NOTHING_TO_SAY}", f"{NOTHING_TO_SAY}\nBut:"]
)
def test_any_other_text_is_not_silence(text: str) -> None:
    assert not is_silence(text)
