"""The rules that hold for every run, checked over a whole sequence of events. Every test of a run calls this."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ai_platform_engineering.events import (
    AgentFinished,
    AgentStarted,
    Canceled,
    Ending,
    Event,
    Failed,
    FinalResult,
    InputRequired,
    MessageEnded,
    PlanUpdated,
    TextDelta,
    ToolFinished,
    ToolStarted,
)

_CHANCE = 40
"""Shorter texts may occur in an answer by chance."""


def check(events: Sequence[Event], *, agent: str = "supervisor") -> Ending:
    """Assert the rules; the ending, for the test to look at."""
    assert events, "a run without events"
    endings = [event for event in events if isinstance(event, InputRequired | FinalResult | Failed | Canceled)]
    assert len(endings) == 1, f"{len(endings)} endings: {endings}"
    ending = events[-1]
    assert ending is endings[0], f"the ending is not last: {events[-1]}"
    _check_calls(events, parked=isinstance(ending, InputRequired))
    _check_texts(events, agent, ending)
    _check_plan(events)
    _check_done_steps(events, answered=isinstance(ending, FinalResult))
    assert isinstance(ending, InputRequired | FinalResult | Failed | Canceled)
    return ending


def check_task(events: Sequence[Event], *, agent: str = "supervisor") -> Ending:
    """Assert the rules for a whole task that waited for people on the way."""
    return check([event for event in events[:-1] if not isinstance(event, InputRequired)] + [events[-1]], agent=agent)


def _check_calls(events: Sequence[Event], *, parked: bool) -> None:
    opened: dict[str, Event] = {}
    ended: set[str] = set()
    for event in events:
        match event:
            case AgentStarted() | ToolStarted():
                assert event.call_id not in opened, f"started twice: {event}"
                assert event.call_id not in ended, f"started after its end: {event}"
                if event.parent_call_id is not None:
                    assert event.parent_call_id in opened, f"its parent is not open: {event}"
                opened[event.call_id] = event
                if isinstance(event, ToolStarted) and event.agent == "supervisor":
                    assert event.tool not in ("task", "write_todos"), f"not a tool of its own: {event}"
                assert event.agent != "task"
            case AgentFinished() | ToolFinished():
                started = opened.pop(event.call_id, None)
                assert started is not None, f"ended without a start, or twice: {event}"
                assert isinstance(started, AgentStarted) == isinstance(event, AgentFinished)
                assert started.agent == event.agent  # type: ignore[union-attr]
                still_open = [o for o in opened.values() if getattr(o, "parent_call_id", None) == event.call_id]
                assert not still_open, f"ended before what it contains: {still_open}"
                assert event.ok or event.reason, f"failed without a reason: {event}"
                assert not event.ok or event.reason is None
                assert event.reason is None or ("\n" not in event.reason and "Traceback" not in event.reason)
                ended.add(event.call_id)
    assert parked or not opened, f"never ended: {list(opened.values())}"


def _check_texts(events: Sequence[Event], agent: str, ending: Event) -> None:
    texts: dict[str, str] = {}
    closed: set[str] = set()
    for event in events:
        match event:
            case TextDelta():
                assert event.message_id not in closed, f"text after the end of its message: {event}"
                assert event.text, "an empty piece of text"
                texts[event.message_id] = texts.get(event.message_id, "") + event.text
            case MessageEnded():
                assert event.message_id in texts, f"a message without text ended: {event}"
                assert event.message_id not in closed, f"a message ended twice: {event}"
                closed.add(event.message_id)
    assert closed == texts.keys(), f"messages never ended: {texts.keys() - closed}"
    if isinstance(ending, FinalResult):
        assert ending.text.strip(), "an empty answer"
        assert texts.get(ending.answer_message_id) == ending.text, "the answer is not what was streamed"
        _check_written_once(events, ending)


def _check_written_once(events: Sequence[Event], ending: FinalResult) -> None:
    """No other message of the run's own agent repeats the answer, or a part of it that is too long to be chance."""
    superseded = {event.supersedes for event in events if isinstance(event, TextDelta)}
    others: dict[str, str] = {}
    for event in events:
        if isinstance(event, TextDelta) and event.parent_call_id is None and event.message_id not in superseded:
            others[event.message_id] = others.get(event.message_id, "") + event.text
    others.pop(ending.answer_message_id, None)
    answer = ending.text.strip()
    for message_id, text in others.items():
        said = text.strip()
        assert said != answer, f"the answer was streamed twice, also as {message_id}"
        assert answer not in said, f"{message_id} contains the answer: {said}"
        assert len(said) < _CHANCE or said not in answer, f"the answer repeats {message_id}: {said}"


def _check_plan(events: Sequence[Event]) -> None:
    plans = [event for event in events if isinstance(event, PlanUpdated)]
    titles: dict[str, str] = {}
    for plan in plans:
        ids = [step.id for step in plan.steps]
        assert len(set(ids)) == len(ids)
        assert [step.order for step in plan.steps] == list(range(len(ids)))
        for step in plan.steps:
            assert titles.setdefault(step.id, step.title) == step.title, "a step's id was given to another step"
    assert all(a.steps != b.steps or a.title != b.title for a, b in pairwise(plans))
    if not plans:
        return
    for event in events:
        if isinstance(event, AgentFinished) and event.plan_step_id and not event.ok and event.reason != "canceled":
            later = [p for p in plans if events.index(p) > events.index(event)]
            shown = {s.id: s.status for s in (later or plans)[-1].steps}
            assert shown.get(event.plan_step_id, "failed") == "failed", f"a failed agent's step is {shown}"


def _check_done_steps(events: Sequence[Event], *, answered: bool) -> None:
    """A completed step was worked on, and successfully. The answer itself completes steps only where there is one."""
    last_plan = max((place for place, event in enumerate(events) if isinstance(event, PlanUpdated)), default=-1)
    for place, event in enumerate(events):
        if not isinstance(event, PlanUpdated):
            continue
        # A task that was read whole has its plan where it was first shown, as it was in the end.
        earlier = events if place == last_plan else events[:place]
        agents = [one for one in earlier if isinstance(one, AgentFinished) and one.ok and one.parent_call_id is None]
        own_tools = [one for one in earlier if isinstance(one, ToolFinished) and one.ok and one.parent_call_id is None]
        by_answer = answered and place == last_plan
        for step in event.steps:
            if step.status != "completed":
                continue
            if step.agent is None:
                assert own_tools or by_answer, f"a step of its own was never worked on: {step}"
            else:
                worked = [one for one in agents if one.agent == step.agent]
                assert any(one.plan_step_id == step.id for one in worked) or (by_answer and worked), (
                    f"no delegation did this step: {step}"
                )
