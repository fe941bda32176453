"""Nothing that a model or a tool has written calls people, wherever it is shown."""

from __future__ import annotations

import pytest

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Event,
    Failed,
    FinalResult,
    Form,
    FormField,
    InputRequired,
    PlanStep,
    PlanUpdated,
    ToolStarted,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Operation, PostForm, UploadFile
from tests.integrations.slack_bot.thread_model import Driver, ThreadModel

CALL = "<!channel> <@U0123ABCD>"
DONE = FinalResult("Done.", "m1")
LONG = "\n".join(f"{number} {CALL} ```" for number in range(100))
FORM = Form("form-1", CALL, (FormField("name", field_description=CALL),), description=CALL)


def shown(events: list[Event], refused: type[Operation] | None = None) -> str:  # type: ignore[valid-type]
    model = ThreadModel(lambda operation: "bad_blocks" if refused and isinstance(operation, refused) else "done")
    driver = Driver(model)
    for event in events:
        driver.feed(event)
        driver.wait(1.0)
    driver.finish()
    return model.words


@pytest.mark.parametrize(
    "events",
    [
        [Failed("model", f"It failed: {CALL}")],
        [PlanUpdated((PlanStep("1", CALL, "in_progress", 0, "argocd"),), CALL), DONE],
        [AgentStarted("jira", "c1"), AgentFinished("jira", "c1", False, CALL), DONE],
        [ToolStarted("supervisor", CALL, "c1"), DONE],
        [FinalResult(CALL, "m1")],
    ],
    ids=["failure", "plan", "reason", "tool", "answer"],
)
def test_mentions_in_shown_text_are_inactive(events: list[Event]) -> None:
    words = shown(events)
    assert "channel" in words
    assert "<!channel" not in words
    assert "<@U" not in words


def test_a_rejected_file_is_text_with_inactive_mentions_and_stays_code() -> None:
    words = shown([FinalResult(f"````text\n{LONG}\n````\n\nDone.", "m1")], UploadFile)
    assert "99" in words
    assert "<!channel" not in words
    assert words.count("````") == 2


def test_a_rejected_form_is_text_with_inactive_mentions() -> None:
    words = shown([InputRequired((FORM,))], PostForm)
    assert "channel" in words
    assert "<!channel" not in words


def test_a_long_form_in_words_is_shown_as_far_as_a_message_goes() -> None:
    fields = tuple(FormField(f"field{number}", field_description="what it is " * 30) for number in range(60))
    assert "field1" in shown([InputRequired((Form("form-1", "Much", fields),))], PostForm)
