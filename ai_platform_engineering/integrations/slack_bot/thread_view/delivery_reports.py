"""What a report says about the operation it belongs to, written down. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ai_platform_engineering.integrations.slack_bot.thread_view.content import files_of
from ai_platform_engineering.integrations.slack_bot.thread_view.operations import (
    Arrived,
    Later,
    Refusal,
    Refused,
    Report,
    Unclear,
)
from ai_platform_engineering.integrations.slack_bot.thread_view.splitting import MESSAGE_LIMIT
from ai_platform_engineering.integrations.slack_bot.thread_view.state import (
    TELLING,
    Message,
    PendingKind,
    PendingOperation,
    State,
)

MAX_FAILURES: Final = 12
"""So many failures in a row, and the thread is given up."""
_TRIES: Final = 3
_MAX_PAUSE: Final = 30.0
_SMALLEST_MESSAGE: Final = 1_000
_ON_MESSAGE: Final = frozenset({"append", "stop", "update"})
_MAKING: Final = frozenset({"start", "post", "form", "file"})
_STREAM_IS_BUSY: Final = "streaming_state_conflict"


def reported(state: State, report: Report, now: float) -> State:
    flight = state.flight
    if flight is None or report.number != flight.number:
        return state
    state = replace(state, flight=None)
    match report:
        case Arrived(ts=ts):
            return replace(_arrived(state, flight, ts, now), failures=0, refusals=0)
        case Later(seconds=seconds):
            return _waiting(state, flight.kind, now + seconds)
        case Unclear():
            # What may have been made twice is not tried for ever; everything else is, until Slack is back.
            max_failures = MAX_FAILURES if flight.kind in _MAKING else None
            return _failed(_unclear(state, flight), flight.kind, now, max_failures)
        case Refused(why="thread_gone"):
            return replace(state, closed=True)
        case Refused(why=why, error=error):
            after = replace(_refused(state, flight, why, error), refusals=state.refusals + 1)
            return _failed(after, flight.kind, now)


def _arrived(state: State, flight: PendingOperation, ts: str, now: float) -> State:
    match flight.kind:
        case "status":
            after = replace(state, status="shown")
        case "start" | "post":
            made = Message(
                start=flight.start,
                sent=flight.upto,
                ts=ts,
                born=now,
                streaming=flight.kind == "start",
                end=None if flight.kind == "start" else flight.end,
                plan=flight.plan,
                cards=flight.cards,
                footer=flight.footer,
            )
            after = replace(state, messages=(*state.messages, made), updated=now)
        case "append" | "stop" | "update":
            after = _message_arrived(state, flight, now)
        case "button":
            after = replace(state, stopper=ts)
        case "no_button":
            after = replace(state, stopper="")
        case "form":
            asked = state.forms[flight.place]
            after = state.with_form(flight.place, replace(asked, ts=ts, shown=flight.form or asked.form))
        case "form_update":
            after = _form_updated(state, flight)
        case "file":
            after = replace(state, files_sent=flight.place + 1)
    return after


def _form_updated(state: State, flight: PendingOperation) -> State:
    asked = state.forms[flight.place]
    shown = flight.form or asked.form
    return state.with_form(flight.place, replace(asked, shown=shown, noted=flight.note is not None))


def _message_arrived(state: State, flight: PendingOperation, now: float) -> State:
    message = state.messages[flight.place]
    if flight.kind == "stop" and message.unsure:
        return state.with_message(flight.place, replace(message, streaming=False))
    # It may have been closed meanwhile; what was on its way then is in it.
    end = None if message.end is None else max(message.end, flight.upto)
    after = replace(message, sent=flight.upto, end=end, plan=flight.plan, cards=flight.cards)
    match flight.kind:
        case "append" if flight.end is not None:
            after = replace(after, end=flight.end)
        case "stop":
            rotated = flight.end is None
            after = replace(after, streaming=False, end=flight.end, footer=flight.footer, rotated=rotated)
        case "update":
            after = replace(after, end=end if flight.end is None else flight.end, footer=flight.footer, unsure=False)
            state = replace(state, updated=now)
    return state.with_message(flight.place, after)


def _refused(state: State, flight: PendingOperation, why: Refusal, error: str) -> State:
    if why == "too_long" and flight.kind in TELLING:
        state = replace(state, limit=max(_SMALLEST_MESSAGE, (state.limit or MESSAGE_LIMIT) // 2))
    match flight.kind:
        case "start":
            after = replace(state, streams=False)
        case "append" | "stop" | "update":
            message = state.messages[flight.place]
            after = state.with_message(flight.place, _after_refusal(message, flight.kind, why, error, state.refusals))
        case "no_button":
            # Where nothing may be deleted it stays, and says that it is over to whoever presses it.
            after = replace(state, stopper="" if why == "message_gone" or state.refusals >= _TRIES else state.stopper)
        case "button":
            # It has no button then; the slash command stops it.
            after = replace(state, unstoppable=True)
        case "form":
            asked = state.forms[flight.place]
            after = state.with_form(flight.place, replace(asked, in_words=True))
        case "form_update":
            # It stays as people see it.
            after = _form_updated(state, flight)
        case "file":
            unfiled = (*state.telling.unfiled, files_of(state.telling)[flight.place])
            after = replace(state, files_sent=flight.place + 1, telling=replace(state.telling, unfiled=unfiled))
        case _:
            after = replace(state, status="refused") if flight.kind == "status" else state
    return after


def _after_refusal(message: Message, kind: PendingKind, why: Refusal, error: str, refusals: int) -> Message:
    if why == "message_gone":
        return replace(message, gone=True, streaming=False, unsure=False, end=message.sent)
    if why == "not_streaming":
        # The stream ended by itself; what was said to have arrived has.
        return replace(message, streaming=False)
    if kind == "update":
        if error == _STREAM_IS_BUSY:
            return replace(message, streaming=True, unsure=True)
        if why == "too_long" or refusals < _TRIES:
            return message
        # It cannot be changed any more: the rest goes into another one.
        return replace(message, unsure=False, end=message.sent)
    return replace(message, unsure=True, streaming=kind == "append")


def _unclear(state: State, flight: PendingOperation) -> State:
    if flight.kind not in _ON_MESSAGE:
        return state
    message = state.messages[flight.place]
    return state.with_message(flight.place, replace(message, unsure=True))


def _failed(state: State, kind: PendingKind, now: float, max_failures: int | None = MAX_FAILURES) -> State:
    failures = state.failures + 1
    pause = 0.0 if failures == 1 else min(_MAX_PAUSE, 0.25 * 2 ** min(failures, 10))
    closed = state.closed or (max_failures is not None and failures > max_failures)
    return replace(_waiting(state, kind, now + pause), failures=failures, closed=closed)


def _waiting(state: State, kind: PendingKind, until: float) -> State:
    state = replace(state, busy={**state.busy, kind: until})
    # What was to be told has not been: it is due as soon as it may be.
    return replace(state, buffer=state.buffer.given_back()) if kind in TELLING else state
