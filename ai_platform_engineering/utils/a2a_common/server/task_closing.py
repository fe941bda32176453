"""How a run that broke off ends: what was open is closed, as the events that were kept show it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ai_platform_engineering.events import (
    AgentFinished,
    Canceled,
    Event,
    Failed,
    InputRequired,
    MessageEnded,
    PlanUpdated,
    TextDelta,
)
from ai_platform_engineering.runs.outcomes import explained
from ai_platform_engineering.storage.event_log.task_fold import parks_task
from ai_platform_engineering.utils.a2a_common.codec.decoder import decode_updates
from ai_platform_engineering.utils.a2a_common.codec.open_calls import OpenCalls
from ai_platform_engineering.utils.a2a_common.wire import StreamState, WireEvent, encode, recall


def closing(
    state: StreamState, kept: Iterable[WireEvent], ending: Failed | Canceled, otherwise: str = ""
) -> list[WireEvent]:
    """The updates that are missing after `kept` to make it a whole run that ends with `ending`.

    The end also says what the run had done, or `otherwise` if it had done nothing.
    """
    updates = list(kept)
    recall(state, updates)
    events = events_so_far(state.agent, updates)
    missing = [*_missing(events, canceled=isinstance(ending, Canceled)), explained(ending, events, otherwise)]
    return [update for event in missing for update in encode(state, event)]


def events_so_far(agent: str, kept: Sequence[WireEvent]) -> list[Event]:
    """The events of a run, with the question at its end if it waits, but without those that were answered."""
    events = decode_updates(agent, kept)
    waits = bool(kept) and parks_task(kept[-1])
    return events if waits else [event for event in events if not isinstance(event, InputRequired)]


def asking_again(state: StreamState, kept: Iterable[WireEvent]) -> list[WireEvent]:
    """The last question of a task that waits for a person, once more; nothing if it never asked."""
    updates = list(kept)
    recall(state, updates)
    questions = [event for event in decode_updates(state.agent, updates) if isinstance(event, InputRequired)]
    return encode(state, questions[-1]) if questions else []


def _missing(events: Iterable[Event], *, canceled: bool) -> list[Event]:
    calls = OpenCalls()
    messages: dict[str, MessageEnded] = {}
    plan: PlanUpdated | None = None
    for event in events:
        calls.note(event)
        match event:
            case TextDelta():
                messages[event.message_id] = MessageEnded(event.agent, event.message_id, event.parent_call_id)
            case MessageEnded():
                messages.pop(event.message_id, None)
            case PlanUpdated():
                plan = event
            case _:
                pass
    ends = calls.close(False, "canceled" if canceled else "stopped")
    # Work that broke off by itself has failed; work that a person stopped is merely unfinished.
    return [*messages.values(), *ends, *([] if canceled else _replanned(plan, ends))]


def _replanned(plan: PlanUpdated | None, ends: Iterable[Event]) -> list[Event]:
    """A step whose agent broke off has failed."""
    if plan is None:
        return []
    broken = {end.plan_step_id for end in ends if isinstance(end, AgentFinished)}
    steps = tuple(replace(step, status="failed") if step.id in broken else step for step in plan.steps)
    return [] if steps == plan.steps else [PlanUpdated(steps, plan.title)]
