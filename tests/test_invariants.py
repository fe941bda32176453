"""The checker of the invariants sees what it is there for."""

from __future__ import annotations

import pytest

from ai_platform_engineering.events import Event, FinalResult, MessageEnded, TextDelta
from tests.invariants import check

ANSWER = "The guestbook application is healthy and in sync."


def message(message_id: str, text: str) -> list[Event]:
    return [TextDelta("supervisor", message_id, text), MessageEnded("supervisor", message_id)]


def test_narration_before_the_answer_is_fine() -> None:
    check([*message("a", "I ask the agent."), *message("b", ANSWER), FinalResult(ANSWER, "b")])


@pytest.mark.parametrize("other", [ANSWER, f"I have it. {ANSWER}", ANSWER[:-5]])
def test_an_answer_that_was_streamed_twice_is_seen(other: str) -> None:
    with pytest.raises(AssertionError, match="answer"):
        check([*message("a", other), *message("b", ANSWER), FinalResult(ANSWER, "b")])
