"""Whatever a run does, and whatever becomes of the operations: the answer is there once and whole, every agent is
named, no echo is shown, and no text is lost."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ai_platform_engineering.events import (
    SUPERVISOR,
    AgentFinished,
    AgentStarted,
    Event,
    FinalResult,
    PlanUpdated,
    TextDelta,
    ToolStarted,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import DeleteMessage, Operation
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import Stop as StopButton
from ai_platform_engineering.integrations.slack_bot.thread_view.planner import is_done
from ai_platform_engineering.utils.a2a_common.codec.labels import display
from tests.integrations.slack_bot.thread_model import Driver, ThreadModel
from tests.strategies import runs

FATES = ["done"] * 6 + ["lost", "dropped", "later", "not_streaming", "other"]
MAX_REFUSED_DELETIONS = 3
"""After one more, a stop button stays."""


def marked(events: list[Event]) -> list[Event]:
    """The same run with distinct words."""
    marked: list[Event] = []
    texts: dict[str, str] = {}
    for number, event in enumerate(events):
        match event:
            case TextDelta():
                word = f"w{number}x " if number % 3 else f"w{number}x\n\n"
                texts[event.message_id] = texts.get(event.message_id, "") + word
                marked.append(replace(event, text=word, supersedes=None))
            case FinalResult():
                marked.append(replace(event, text=texts[event.answer_message_id]))
            case _:
                marked.append(event)
    return marked


def is_spoken(event: Event) -> bool:
    return isinstance(event, TextDelta) and event.agent == SUPERVISOR and event.parent_call_id is None


def begins(event: Event) -> bool:
    return isinstance(event, AgentStarted | ToolStarted) and event.parent_call_id is None


def must_be_shown(events: list[Event], place: int) -> bool:
    """Said when no agent had reported since something else began, or before a tool of the supervisor: narration."""
    before = next((one for one in reversed(events[:place]) if begins(one) or isinstance(one, AgentFinished)), None)
    after = next((one for one in events[place:] if begins(one)), None)
    return not isinstance(before, AgentFinished) or (isinstance(after, ToolStarted) and not replanned(events, place))


def replanned(events: list[Event], place: int) -> bool:
    """Whether the plan changes before something else begins: what was said before may have been dropped then."""
    until_next = itertools.takewhile(lambda event: not begins(event), events[place:])
    return any(isinstance(event, PlanUpdated) for event in until_next)


def may_be_shown(events: list[Event], place: int) -> bool:
    """Another step may have begun, or the message had begun before the agent reported, or there is no answer."""
    message = events[place].message_id  # type: ignore[union-attr]
    first = next(i for i, event in enumerate(events) if isinstance(event, TextDelta) and event.message_id == message)
    return (
        not isinstance(events[-1], FinalResult)
        or events[-1].answer_message_id == message
        or must_be_shown(events, first)
        or any(isinstance(event, PlanUpdated) for event in events)
    )


@settings(max_examples=150, deadline=None)
@given(runs(), st.data())
def test_the_answer_is_seen_once_whatever_fails(run: list[Event], data: Any) -> None:
    events = marked(run)
    left = data.draw(st.integers(0, 12), label="failures")
    refused_deletions = 0

    def fate(operation: Operation) -> str:
        nonlocal left, refused_deletions
        drawn = data.draw(st.sampled_from(FATES)) if left else "done"
        left -= drawn != "done"
        refused_deletions += isinstance(operation, DeleteMessage) and drawn == "other"
        return str(drawn)

    model = ThreadModel(fate)
    driver = Driver(model)
    for event in events:
        driver.feed(event)
        if data.draw(st.booleans()):
            driver.wait(data.draw(st.sampled_from([0.0, 0.05, 0.5, 3.0, 130.0])))
        if data.draw(st.integers(0, 5)) == 0:
            driver.killed()
    left = min(left, 4)
    driver.finish()

    assert is_done(driver.state)
    assert not any(shown.streaming and shown.ts not in model.not_stopped for shown in model.messages)
    assert refused_deletions > MAX_REFUSED_DELETIONS or not any(
        isinstance(shown.footer, StopButton) for shown in model.messages
    )
    words = re.findall(r"w\d+x", model.text)
    assert len(words) == len(set(words)), "something was said twice"
    ending = events[-1]
    if isinstance(ending, FinalResult):
        assert "".join(ending.text.split()) in "".join(model.text.split())
    for place, event in enumerate(events):
        if isinstance(event, TextDelta):
            word = event.text.strip()
            if not is_spoken(event):
                assert word not in words
            elif must_be_shown(events, place):
                assert word in words, "text was lost"
            elif not may_be_shown(events, place):
                assert word not in words, "an echo was shown"
        if isinstance(event, AgentStarted):
            assert display(event.agent) in model.words
